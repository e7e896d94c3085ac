"""Awkward queries, errors, state: nothing raises on data, nothing is NaN."""

import numpy as np
import pytest
import torch

import setpoint as sp

GOAL = sp.precision_at_k(3).per("query")


def learn(criterion, scores, labels, **given):
    leaf = torch.as_tensor(scores, dtype=torch.float64).requires_grad_()
    loss = criterion(leaf, torch.as_tensor(labels), **given)
    loss.backward()
    return loss.item(), leaf.grad


AWKWARD = {
    "one document": ([1.0], [1], [0]),
    "nothing relevant": ([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], [0, 0, 1, 1]),
    "all relevant": ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], [0, 0, 1, 1]),
    "constant scores": ([1.0] * 6, [1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 1, 1]),
    "far apart": ([1e9, -1e9, 0.0, 1e-9, 5.0, 5.0], [1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 1, 1]),
    "all of length one": ([3.0, 1.0, 2.0], [1, 0, 1], [2, 0, 1]),
}


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("case", AWKWARD.values(), ids=AWKWARD.keys())
@pytest.mark.parametrize(
    "problem",
    [
        GOAL,
        sp.recall_at_precision(0.9).per(),
        sp.Problem(maximize=sp.recall, subject_to=sp.fpr <= 0.1).per(),
    ],
    ids=str,
)
def test_awkward_queries_give_a_finite_loss_and_gradient(problem, case, share):
    scores, labels, queries = case
    criterion = sp.Implicit(problem, share=share)
    loss, gradient = learn(criterion, scores, labels, queries=queries)
    assert np.isfinite(loss)
    assert gradient.isfinite().all()
    assert criterion.status
    assert criterion.stats()["queries"] == len(set(queries))


def test_a_query_with_one_kind_of_documents_has_nothing_to_rank():
    scores, labels = [1.0, 2.0, 0.5, 3.0, 1.0, 2.0], [1, 0, 1, 0, 0, 0]
    alone = learn(sp.Implicit(GOAL, share=0.5), scores[:4], labels[:4], queries=[0] * 4)
    loss, gradient = learn(sp.Implicit(GOAL, share=0.5), scores, labels, queries=[0] * 4 + [1] * 2)
    assert loss == pytest.approx(alone[0], rel=1e-12)
    torch.testing.assert_close(gradient[:4], alone[1], rtol=1e-12, atol=0)
    assert (gradient[4:] == 0).all()


def test_a_batch_without_any_judged_query_says_so_and_keeps_the_graph():
    criterion = sp.Implicit(GOAL)
    loss, gradient = learn(criterion, [1.0, 2.0], [0, 0], queries=[7, 7])
    assert loss == 0
    assert (gradient == 0).all()
    assert criterion.status == "no query has both relevant and other documents"
    with pytest.raises(ValueError, match="no query has both"):
        learn(sp.Implicit(GOAL, strict=True), [1.0, 2.0], [0, 0], queries=[7, 7])


def test_a_query_shorter_than_k_is_accepted_whole():
    criterion = sp.Implicit(sp.precision_at_k(10).per(), share=0.0)
    learn(criterion, [3.0, 2.0, 1.0], [1, 0, 0], queries=[0, 0, 0])
    assert criterion.thresholds.tolist() == [[-np.inf]]
    assert criterion.stats()["hard_objective"] == pytest.approx(1 / 3)
    assert criterion.status == "held"


def test_bounds_out_of_reach_are_counted():
    criterion = sp.Implicit(sp.recall_at_precision(0.9).per())
    scores, labels = [3.0, 2.0, 1.0, 3.0, 2.0], [0, 1, 0, 1, 0]
    learn(criterion, scores, labels, queries=["a", "a", "a", "b", "b"])
    assert criterion.status == "infeasible: `precision >= 0.9` is not met in 1 of 2 queries"
    assert criterion.stats()["hard_objective"] is None


def test_what_happened_is_told_in_means_over_queries():
    criterion = sp.Implicit(sp.precision_at_k(1).per(), share=0.0, step=sp.Sigmoid(width=1e-6))
    scores, labels = [3.0, 2.0, 1.0, 3.0, 2.0], [1, 0, 0, 0, 1]
    loss, _ = learn(criterion, scores, labels, queries=[0, 0, 0, 1, 1])
    told = criterion.stats()
    assert told["hard_objective"] == 0.5
    assert told["held_rate"] == 1
    assert told["queries"] == told["judged"] == 2
    assert told["soft_objective"] == pytest.approx(-loss, rel=1e-12)
    assert sp.Implicit(GOAL).stats() == {"status": "not started"}


def test_slices_within_queries():
    problem = sp.Problem(maximize=sp.precision.on(kind="new"), subject_to=sp.recall >= 0.5)
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=40), np.tile([1, 0, 0, 1, 0], 8)
    kinds, queries = np.tile(["new", "old"], 20), np.arange(40) // 20
    options = {"share": 0.0, "step": sp.Sigmoid(width=0.3)}
    loss, gradient = learn(
        sp.Implicit(problem.per(), **options), scores, labels, queries=queries, groups=kinds
    )
    alone = [
        learn(sp.Implicit(problem, **options), scores[r], labels[r], groups=kinds[r])
        for r in (queries == 0, queries == 1)
    ]
    assert loss == pytest.approx(np.mean([x for x, _ in alone]), rel=1e-12)
    torch.testing.assert_close(gradient, torch.cat([g for _, g in alone]) / 2)


def test_queries_may_be_a_column_among_the_groups():
    scores, labels, queries = [1.0, 2.0, 0.5, 3.0], [1, 0, 1, 0], np.array([0, 0, 1, 1])
    expected = learn(sp.Implicit(GOAL), scores, labels, queries=queries)
    found = learn(sp.Implicit(GOAL), scores, labels, groups={"query": queries, "sex": queries})
    assert found[0] == expected[0]
    assert torch.equal(found[1], expected[1])


def test_a_main_loss_of_the_users_own_may_ask_for_queries():
    asked = []

    def spy(scores, labels, queries):
        asked.append(queries)
        return (scores**2).mean()

    _, gradient = learn(
        sp.Implicit(GOAL, main=spy, share=1.0), [1.0, 2.0, 3.0], [1, 0, 0], queries=[5, 5, 5]
    )
    assert asked == [[5, 5, 5]]
    torch.testing.assert_close(gradient, torch.tensor([2.0, 4.0, 6.0]).double() / 3)
    plain = sp.Implicit(GOAL, main=lambda s, y: (s**2).mean(), share=1.0)
    assert torch.equal(learn(plain, [1.0, 2.0, 3.0], [1, 0, 0], queries=[5, 5, 5])[1], gradient)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "pass queries=, the query of each example"),
        ({"queries": [0, 0]}, "queries must have the shape"),
        ({"queries": [0.0, float("nan"), 1.0]}, "NaN in row 1"),
        ({"queries": ["a", None, "b"]}, "None in row 1"),
        ({"queries": {"site": [1, 1, 1]}}, 'needs the column "query"; queries has: site'),
    ],
)
def test_queries_that_are_none(given, error):
    with pytest.raises(ValueError, match=error):
        learn(sp.Implicit(GOAL), [1.0, 2.0, 3.0], [1, 0, 0], **given)


def test_other_slips_are_answered():
    with pytest.raises(ValueError, match=r"one score per document, \[n\] or \[n, 1\]"):
        sp.Implicit(GOAL)(torch.zeros(3, 2), torch.zeros(3, 2), queries=[0, 0, 0])
    with pytest.raises(ValueError, match="nan in row 1"):
        sp.Implicit(GOAL)(torch.tensor([1.0, torch.nan]), torch.tensor([1, 0]), queries=[0, 0])
    with pytest.raises(ValueError, match=r"leave [a-z_]+= out"):
        sp.Implicit(GOAL, memory=100)
    with pytest.raises(ValueError, match=r"leave [a-z_]+= out"):
        sp.Implicit.as_published(GOAL)
    with pytest.raises(ValueError, match="main must be one of"):
        sp.Implicit(GOAL, main="pairs")
    with pytest.raises(ValueError, match="per query"):
        sp.Lagrangian(GOAL)


def test_state_survives_a_checkpoint():
    scores, labels, queries = torch.randn(30), torch.arange(30) % 3 == 0, torch.arange(30) // 10
    first = sp.Implicit(GOAL, steps=10)
    for _ in range(3):
        first(scores.clone().requires_grad_(), labels, queries=queries)
    second = sp.Implicit(GOAL, steps=10)
    second.load_state_dict(first.state_dict())
    one, other = (learn(c, scores.double(), labels, queries=queries) for c in (first, second))
    assert one[0] == other[0]
    assert torch.equal(one[1], other[1])
    assert first.thresholds.shape == (3, 1)
    assert "main='listwise'" in repr(first)


def test_looking_is_not_a_step():
    criterion = sp.Implicit(GOAL, steps=10)
    with torch.no_grad():
        criterion(torch.randn(6), torch.arange(6) % 2, queries=torch.zeros(6))
    assert criterion.step_count == 0
    criterion.eval()(torch.randn(6, requires_grad=True), torch.arange(6) % 2, queries=[0] * 6)
    assert criterion.step_count == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_counts_in_full(dtype):
    leaf = torch.randn(40, dtype=dtype, requires_grad=True)
    loss = sp.Implicit(GOAL)(
        leaf[:, None], torch.arange(40) % 3 == 0, queries=torch.arange(40) // 20
    )
    loss.backward()
    assert loss.dtype == torch.float32
    assert leaf.grad.dtype == dtype
    assert leaf.grad.isfinite().all()


def test_it_compiles_whole():
    queries = torch.arange(24)[torch.randperm(24, generator=torch.Generator().manual_seed(0))] % 3
    scores, labels = torch.randn(24, generator=torch.Generator().manual_seed(1)), queries != 0
    labels[:6] = ~labels[:6]
    eager, compiled = sp.Implicit(GOAL, steps=5), sp.Implicit(GOAL, steps=5)
    torch._dynamo.reset()
    call = torch.compile(compiled, fullgraph=True, backend="aot_eager")
    gradients = []
    for criterion in (eager, call):
        leaf = scores.clone().requires_grad_()
        criterion(leaf, labels, queries=queries).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-9)
    assert compiled.status == "held"
