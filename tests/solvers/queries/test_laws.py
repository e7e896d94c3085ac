"""Laws of problems per query. Float64; algebra 1e-12, finite differences 1e-6."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from setpoint import (
    Implicit,
    Problem,
    Sigmoid,
    alerts,
    coverage,
    f_score,
    fnr,
    fnr_at_fpr,
    fpr,
    pr_auc,
    precision,
    precision_at_k,
    precision_at_recall,
    recall,
    roc_auc,
)
from setpoint.axes import Queries
from setpoint.axes import queries as queries_module
from setpoint.axes.everyone import spread
from setpoint.axes.queries import spread_within
from setpoint.axes.sample import read_sample
from setpoint.rates import Counts
from setpoint.steps import Softplus

PROBLEMS = [
    precision_at_k(5),
    precision_at_k(3, of=10),
    Problem(maximize=recall, subject_to=alerts.at(4)),
    Problem(minimize=fnr, subject_to=fpr.at(0.2)),
    Problem(maximize=precision, subject_to=recall.at(0.7)),
    fnr_at_fpr(0.2),
    precision_at_recall(0.6),
    Problem(maximize=f_score(1)),
    Problem(maximize=recall, subject_to=coverage <= 0.3),
    Problem(maximize=precision, subject_to=alerts.over(0, 6), thresholds=3),
    roc_auc((0, 0.4), points=3),
    pr_auc(precision=(0.2, 0.6), points=2),
]
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def draw(lengths=(12, 30, 7, 21), seed=0, ties=False):
    rng = torch.Generator().manual_seed(seed)
    queries = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    n = len(queries)
    labels = (torch.rand(n, generator=rng) < 0.35).long()
    first = torch.searchsorted(queries, torch.arange(len(lengths)))
    labels[first], labels[first + 1] = 1, 0  # every query has both
    scores = torch.randn(n, generator=rng, dtype=torch.float64) + labels
    return (scores.round(decimals=1) if ties else scores), labels, queries


SAME = {"step": Sigmoid(width=0.1), "widening": 3.0}  # queries have wider bands by default


def bare(problem, **options):
    return Implicit(problem, share=0.0, **{**SAME, **options})


def loss_and_gradient(criterion, scores, labels, **keywords):
    leaf = scores.detach().clone().requires_grad_()
    loss = criterion(leaf, labels, **keywords)
    loss.backward()
    return loss.item(), leaf.grad


@every_problem
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "options",
    [{"share": 0.0}, {"main": "focal"}, {"share": 0.0, "flatness": 0.3, "slope_floor": 0.01}],
    ids=["bare", "focal", "flat"],
)
def test_one_query_is_the_plain_problem(problem, options, ties):
    scores, labels, queries = draw((40,), ties=ties)
    options = {**SAME, **options}
    expected = loss_and_gradient(Implicit(problem, **options), scores, labels)
    found = loss_and_gradient(
        Implicit(problem.per("query"), **options), scores, labels, queries=queries
    )
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("problem", [PROBLEMS[3], PROBLEMS[0]], ids=str)
def test_one_query_is_the_plain_problem_with_other_steps_too(problem):
    scores, labels, queries = draw((40,))
    for step in (Softplus(), Sigmoid(temperature=0.3)):
        expected = loss_and_gradient(bare(problem, step=step), scores, labels)
        found = loss_and_gradient(bare(problem.per(), step=step), scores, labels, queries=queries)
        assert found[0] == pytest.approx(expected[0], rel=1e-12)
        torch.testing.assert_close(found[1], expected[1], rtol=1e-9, atol=1e-14)


@every_problem
@pytest.mark.parametrize("ties", [False, True])
def test_several_queries_are_the_mean_of_their_own_problems(problem, ties):
    scores, labels, queries = draw(ties=ties)
    alone = [
        loss_and_gradient(bare(problem), scores[queries == q], labels[queries == q])
        for q in range(4)
    ]
    found = loss_and_gradient(bare(problem.per("query")), scores, labels, queries=queries)
    assert found[0] == pytest.approx(np.mean([loss for loss, _ in alone]), rel=1e-12)
    expected = torch.cat([gradient for _, gradient in alone]) / 4
    torch.testing.assert_close(found[1], expected, rtol=1e-9, atol=1e-14)


@every_problem
def test_order_of_documents_and_names_of_queries_are_irrelevant(problem):
    scores, labels, queries = draw(ties=True)
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(1))
    names = np.array(["d", "a", "c", "b"])[queries.numpy()]
    given = Implicit(problem.per("query"))
    loss, gradient = loss_and_gradient(given, scores, labels, queries=queries)
    other, moved = loss_and_gradient(
        Implicit(problem.per("query")), scores[order], labels[order], queries=names[order.numpy()]
    )
    assert other == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(moved, gradient[order], rtol=1e-10, atol=1e-14)


@every_problem
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_offsets_between_queries_change_nothing(problem, share):
    """Of the default main loss too: the widths and both losses stay within the query."""
    scores, labels, queries = draw()
    offsets = torch.tensor([8.0, -64.0, 0.5, 1024.0], dtype=torch.float64)[queries]
    loss, gradient = loss_and_gradient(
        Implicit(problem.per("query"), share=share), scores, labels, queries=queries
    )
    moved = loss_and_gradient(
        Implicit(problem.per("query"), share=share), scores + offsets, labels, queries=queries
    )
    assert moved[0] == pytest.approx(loss, rel=1e-9)
    torch.testing.assert_close(moved[1], gradient, rtol=1e-7, atol=1e-12)
    for q in range(4):
        own = gradient[queries == q]
        assert abs(own.sum()) <= 1e-12 * gradient.abs().sum()


@every_problem
def test_the_scale_of_a_query_scales_only_its_gradient(problem):
    scores, labels, queries = draw()
    factors = torch.tensor([1.0, 1e-6, 1e6, 3.0], dtype=torch.float64)[queries]
    loss, gradient = loss_and_gradient(bare(problem.per()), scores, labels, queries=queries)
    other = loss_and_gradient(bare(problem.per()), scores * factors, labels, queries=queries)
    assert other[0] == pytest.approx(loss, rel=1e-8)
    torch.testing.assert_close(other[1] * factors, gradient, rtol=1e-6, atol=1e-10)


@every_problem
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_weight_is_a_number_of_copies(problem, share):
    scores, labels, queries = draw(ties=True)
    copies = torch.randint(0, 4, (len(scores),), generator=torch.Generator().manual_seed(2))
    index = torch.repeat_interleave(torch.arange(len(scores)), copies)
    loss, gradient = loss_and_gradient(
        Implicit(problem.per(), share=share),
        scores,
        labels,
        queries=queries,
        weights=copies.double(),
    )
    other, pieces = loss_and_gradient(
        Implicit(problem.per(), share=share), scores[index], labels[index], queries=queries[index]
    )
    assert other == pytest.approx(loss, rel=1e-10)
    together = torch.zeros(len(scores), dtype=torch.float64).index_add(0, index, pieces)
    torch.testing.assert_close(gradient, together, rtol=1e-8, atol=1e-13)


@every_problem
def test_a_batch_taken_in_parts_is_the_same(problem, monkeypatch):
    scores, labels, queries = draw((9, 14, 6, 11, 8, 20))
    expected = loss_and_gradient(Implicit(problem.per()), scores, labels, queries=queries)
    monkeypatch.setattr(queries_module, "CHUNK", 20)
    found = loss_and_gradient(Implicit(problem.per()), scores, labels, queries=queries)
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("ties", [False, True])
def test_the_spread_of_a_query_is_that_of_its_scores_alone(ties):
    scores, labels, queries = draw(ties=ties)
    scores[5] = 1e3  # an outlier stays in its query
    last = torch.nonzero(torch.as_tensor(queries == 3))[:, 0]
    scores[last[:-1]] = 0.25  # almost all of one are equal: its one other score is no outlier
    weights = torch.randint(0, 3, (len(scores),), generator=torch.Generator().manual_seed(3))
    axis = Queries(precision_at_k(3).per())
    ((_, sample),) = axis.read(scores, labels, weights.double(), queries=queries).parts()
    found = spread_within(sample.query_cuts)
    for q in range(4):
        mine = queries == q
        own = read_sample(((),), scores[mine], labels[mine], weights[mine].double())
        assert found[q] == pytest.approx(spread(own.cuts)[0], rel=1e-12)


# ---- gradients ---------------------------------------------------------------------------------


def soft_tables(scores, t, h, labels):
    up, down = torch.sigmoid((scores - t) / h), torch.sigmoid((t - scores) / h)
    sums = (x[labels == c].sum() for x in (up, down) for c in (1, 0))
    return {(): Counts(*sums, (labels == 1).sum().double(), (labels == 0).sum().double())}


def resolved(problem, held, labels, queries):
    """The mean objective as a function of the scores, every threshold re-solved on soft counts."""

    def objective(scores):
        total = 0.0
        for q, anchor, t0, h, level in held:
            own, mine = scores[queries == q], labels[queries == q]
            gap = lambda t: anchor.of(soft_tables(own, t, h, mine)).item() - level  # noqa: E731, B023
            t = brentq(gap, t0 - 0.5 * h, t0 + 0.5 * h, xtol=1e-14)
            total += problem.objective.of(soft_tables(own, t, h, mine)).item()
        return total / len(held) * (-1 if problem.maximize else 1)

    return objective


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_gradient_is_that_of_the_resolved_soft_problem(problem, monkeypatch):
    scores, labels, queries = draw((12, 30, 7))
    seen = []
    held_by = Queries.held

    def spy(axis, counts, placed):
        seen.append((axis.targets, counts, placed))
        return held_by(axis, counts, placed)

    monkeypatch.setattr(Queries, "held", spy)
    criterion = bare(problem.per("query"), step=Sigmoid(width=0.3))
    loss, gradient = loss_and_gradient(criterion, scores, labels, queries=queries)
    ((targets, reading, seat),) = seen
    held = []
    for q in range(3):
        own, mine = scores[queries == q], labels[queries == q]
        for j in range(seat.marginal.shape[1]):
            anchor = coverage
            for target, flags in zip(targets, seat.holding, strict=True):
                if bool(flags[q, j]) or target.sorts:
                    anchor = target.expression
            t, h = seat.marginal[q, j].item(), reading.width[q, j].item()
            held.append((q, anchor, t, h, anchor.of(soft_tables(own, t, h, mine)).item()))
    objective = resolved(problem, held, labels, queries)
    assert objective(scores) == pytest.approx(loss, rel=1e-9)
    rng = torch.Generator().manual_seed(4)
    for _ in range(6):
        direction = torch.randn(len(scores), generator=rng, dtype=torch.float64)
        e = 1e-5
        slope = (objective(scores + e * direction) - objective(scores - e * direction)) / (2 * e)
        assert (gradient @ direction).item() == pytest.approx(slope, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_listwise_gradient_is_that_of_every_relevant_document_against_the_others(scale):
    scores, labels, queries = draw()
    scores = scores * scale
    criterion = Implicit(precision_at_k(3).per(), share=1.0)
    _, gradient = loss_and_gradient(criterion, scores, labels, queries=queries)
    leaf = scores.clone().requires_grad_()
    total = 0.0
    for q in range(4):
        own, mine = leaf[queries == q], labels[queries == q]
        others = own[mine == 0]
        losses = [torch.logsumexp(torch.cat([s[None], others]), 0) - s for s in own[mine == 1]]
        total = total + torch.stack(losses).mean() / 4
    total.backward()
    torch.testing.assert_close(gradient, leaf.grad, rtol=1e-10, atol=1e-14)


@every_problem
def test_what_is_held_holds_in_every_query(problem):
    scores, labels, queries = draw((25, 40, 33, 60), seed=3)
    criterion = bare(problem.per())
    loss_and_gradient(criterion, scores, labels, queries=queries)
    assert criterion.status == "held"
    for q, thresholds in enumerate(criterion.thresholds):
        own, mine = scores[queries == q], labels[queries == q]
        expected = problem.choose(own, mine).thresholds
        assert thresholds.tolist() == list(expected)


def test_training_learns_to_rank():
    """A linear scorer on three columns finds the one that orders the documents of each query."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 3, generator=rng)
    queries = torch.arange(2000) // 20
    noise = torch.randn(100, generator=rng)[queries]  # an offset that no ranking needs
    labels = (x[:, 0] > 0.7).long()
    x[:, 1] = noise + 0.1 * x[:, 0]
    model = torch.nn.Linear(3, 1)
    criterion = Implicit(precision_at_k(4).per(), steps=60)
    adam = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        adam.zero_grad()
        criterion(model(x), labels, queries=queries).backward()
        adam.step()
    found = precision_at_k(4).per().evaluate(model(x).detach(), labels, queries=queries)
    best = precision_at_k(4).per().evaluate(x[:, 0], labels, queries=queries)
    assert found >= best - 0.01
