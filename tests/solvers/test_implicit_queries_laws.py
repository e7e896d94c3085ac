"""Laws of problems per query. Float64; algebra 1e-12, finite differences 1e-6."""

import numpy as np
import pytest
import torch
from samples import draw_queries as draw
from samples import loss_and_gradient
from subjects import PER_QUERY as PROBLEMS

from setpoint import Implicit, Sigmoid, precision_at_k
from setpoint.axes import Queries
from setpoint.axes import queries as queries_module
from setpoint.axes.order_statistics import spread
from setpoint.axes.queries import spread_within
from setpoint.axes.sample import read_sample
from setpoint.batch import ScoredExamples
from setpoint.steps import Softplus

every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


SAME = {"step": Sigmoid(width=0.1), "widening": 3.0}  # queries have wider bands by default


def bare(problem, **options):
    return Implicit(problem, share=0.0, **{**SAME, **options})


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
    assert found[0].item() == pytest.approx(expected[0].item(), rel=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("problem", [PROBLEMS[3], PROBLEMS[0]], ids=str)
def test_one_query_is_the_plain_problem_with_other_steps_too(problem):
    scores, labels, queries = draw((40,))
    for step in (Softplus(), Sigmoid(temperature=0.3)):
        expected = loss_and_gradient(bare(problem, step=step), scores, labels)
        found = loss_and_gradient(bare(problem.per(), step=step), scores, labels, queries=queries)
        assert found[0].item() == pytest.approx(expected[0].item(), rel=1e-12)
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
    assert found[0].item() == pytest.approx(np.mean([loss.item() for loss, _ in alone]), rel=1e-12)
    expected = torch.cat([gradient for _, gradient in alone]) / 4
    torch.testing.assert_close(found[1], expected, rtol=1e-9, atol=1e-14)


@every_problem
def test_a_batch_taken_in_parts_is_the_same(problem, monkeypatch):
    scores, labels, queries = draw((9, 14, 6, 11, 8, 20))
    expected = loss_and_gradient(Implicit(problem.per()), scores, labels, queries=queries)
    monkeypatch.setattr(queries_module, "EXAMPLES_AT_ONCE", 20)
    found = loss_and_gradient(Implicit(problem.per()), scores, labels, queries=queries)
    assert found[0].item() == pytest.approx(expected[0].item(), rel=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("ties", [False, True])
def test_the_spread_of_a_query_is_that_of_its_scores_alone(ties):
    scores, labels, queries = draw(ties=ties)
    scores[5] = 1e3  # an outlier stays in its query
    last = torch.nonzero(torch.as_tensor(queries == 3))[:, 0]
    scores[last[:-1]] = 0.25  # almost all of one are equal: its one other score is no outlier
    weights = torch.randint(0, 3, (len(scores),), generator=torch.Generator().manual_seed(3))
    axis = Queries(precision_at_k(3).per())
    examples = ScoredExamples(scores, labels, weights.double(), queries=queries)
    ((_, _, sample),) = axis.read(examples).parts()
    found = spread_within(sample.query_cuts)
    for q in range(4):
        mine = queries == q
        own = read_sample(((),), scores[mine], labels[mine], weights[mine].double())
        assert found[q] == pytest.approx(spread(own.scores, own.weights)[0], rel=1e-12)


# ---- gradients ---------------------------------------------------------------------------------


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
