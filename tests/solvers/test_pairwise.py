"""Losses over pairs: equal to the double loop, and no more than n log n."""

import time

import pytest
import torch
from samples import HARD_BATCHES as BATCHES
from samples import draw
from samples import loss_and_gradient as gradient

import setpoint as sp
from setpoint.solvers import pairwise
from setpoint.solvers.pairwise import sigmoid_sums

SURROGATES = ["squared_hinge", "sigmoid"]
both = pytest.mark.parametrize("surrogate", SURROGATES)


def double_loop(surrogate, scale, scores, labels, low, high, weights):
    """All pairs, one by one; negatives of the range by walking down the sorted ones."""
    total = weights[labels == 0].sum()
    inside = torch.zeros_like(weights)
    values = sorted(set(scores[labels == 0].tolist()), reverse=True)
    above = 0.0
    for value in values:  # equal scores share what their block is given
        block = (scores.detach() == value) & (labels == 0)
        size = weights[block].sum()
        part = min(above + size, high * total) - max(above, low * total)
        inside[block] = weights[block] * max(0.0, float(part / size))
        above = above + size
    loss = torch.zeros((), dtype=torch.float64)
    for i in torch.nonzero(labels == 1)[:, 0]:
        for j in torch.nonzero(inside)[:, 0]:
            d = (scores[i] - scores[j]) / scale
            each = torch.relu(1 - d) ** 2 if surrogate == "squared_hinge" else torch.sigmoid(-d)
            loss = loss + weights[i] * inside[j] * each
    return loss / (weights[labels == 1].sum() * inside.sum())


@both
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "scale"), [(0, 1, 1.0), (0, 0.13, 0.5), (0.2, 0.7, 2.0), (0, 0.001, 1.0)]
)
def test_it_equals_the_double_loop(surrogate, ties, low, high, scale):
    scores, y = draw(60, 3, ties=ties)
    weights = torch.rand(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    criterion = sp.Pairwise(sp.roc_auc(fpr=(low, high)), surrogate=surrogate, scale=scale)
    leaf = scores.clone().requires_grad_()
    expected = double_loop(surrogate, scale, leaf, y, low, high, weights)
    (slopes,) = torch.autograd.grad(expected, leaf)
    loss, found = gradient(criterion, scores, y, weights=weights)
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found, slopes, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("spread", [1e-6, 0.5, 10.0, 300.0, 1e9])
def test_cells_are_as_good_as_pairs(spread, monkeypatch):
    """Machine precision whatever the spread: all in one cell, a few, or one a score."""
    rng = torch.Generator().manual_seed(0)
    x = spread * torch.randn(300, generator=rng, dtype=torch.float64)
    y = spread * torch.randn(200, generator=rng, dtype=torch.float64)
    weights = torch.rand(200, generator=rng, dtype=torch.float64)
    expected = sigmoid_sums(x, y, weights)
    monkeypatch.setattr(pairwise, "FEW_PAIRS", 0)
    for found, direct in zip(sigmoid_sums(x, y, weights), expected, strict=True):
        torch.testing.assert_close(found, direct, rtol=0, atol=1e-13 * float(weights.sum()))


@both
def test_pairs_are_never_written_down(surrogate):
    """400,000 examples have 4e10 pairs: 320 GB, or half an hour at a pair a nanosecond."""
    scores, y = draw(400_000)
    criterion = sp.Pairwise(sp.roc_auc(), surrogate=surrogate)
    start = time.process_time()
    loss, found = gradient(criterion, scores, y)
    assert time.process_time() - start < 20
    assert loss.isfinite()
    assert found.isfinite().all()
    assert found.sum().abs() < 1e-9  # no pull along (1, ..., 1)


def test_the_rate_at_an_fpr_is_trained_by_the_area_up_to_it():
    scores, y = draw(60)
    expected = gradient(sp.Pairwise(sp.roc_auc(fpr=(0, 0.1))), scores, y)[1]
    for problem in (
        sp.fnr_at_fpr(0.1),
        sp.tpr_at_fpr(0.1),
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)),
    ):
        assert torch.equal(gradient(sp.Pairwise(problem), scores, y)[1], expected)


@both
def test_it_compiles_without_a_graph_break(surrogate):
    scores, y = draw(40)
    torch._dynamo.reset()
    criterion = sp.Pairwise(sp.roc_auc(fpr=(0, 0.3)), surrogate=surrogate)
    run = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    leaf = scores.clone().requires_grad_()
    (found,) = torch.autograd.grad(run(leaf, y), leaf)
    torch.testing.assert_close(found, gradient(criterion, scores, y)[1], rtol=1e-9, atol=1e-12)


@both
@pytest.mark.parametrize("batch", BATCHES)
def test_loss_and_gradient_are_finite_and_attached(surrogate, batch, monkeypatch):
    scores, labels = BATCHES[batch]
    for few in (0, 2**17):
        monkeypatch.setattr(pairwise, "FEW_PAIRS", few)
        leaf = scores.clone().requires_grad_()
        criterion = sp.Pairwise(sp.roc_auc(fpr=(0, 0.3)), surrogate=surrogate)
        assert criterion.status == "not started"
        loss = criterion(leaf, labels)
        loss.backward()
        assert loss.isfinite()
        assert leaf.grad.isfinite().all()
        assert isinstance(criterion.status, str)
        if batch == "constant scores":
            assert criterion.status == "flat: all scores are equal"
        if batch.startswith("no "):
            assert criterion.status == f"{batch} in the batch"
            assert not leaf.grad.any()


def test_the_exact_threshold_follows():
    scores, y = draw(60)
    criterion = sp.Pairwise(sp.fnr_at_fpr(0.1))
    criterion(scores, y)
    assert criterion.stats()["hard_objective"] == sp.fnr_at_fpr(0.1).evaluate(scores, y)
    assert criterion.status == "held"


@pytest.mark.parametrize(
    "problem",
    [
        sp.pr_auc((0.9, 1)),
        sp.Problem(maximize=sp.f_score(1)),
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr >= 0.2),
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group=1) <= 0.2),
        sp.Problem(minimize=sp.fpr, subject_to=sp.fnr <= 0.1),
    ],
    ids=str,
)
def test_what_it_cannot_express_is_refused_with_who_can(problem):
    with pytest.raises(ValueError, match="Implicit and Lagrangian train for it"):
        sp.Pairwise(problem)


def test_thresholds_per_group_are_not_for_multipliers_either():
    gap = abs(sp.coverage.on(g="a") - sp.coverage.on(g="b")) <= 0.1
    problem = sp.Problem(minimize=sp.error, subject_to=gap, thresholds="per group")
    with pytest.raises(ValueError, match=r"an fpr above 0\)\. Implicit trains for it"):
        sp.Pairwise(problem)


def test_bad_settings_are_refused():
    with pytest.raises(TypeError, match="takes a Problem"):
        sp.Pairwise(sp.fnr)
    with pytest.raises(ValueError, match="'squared_hinge' or 'sigmoid'"):
        sp.Pairwise(sp.roc_auc(), surrogate="hinge")
    with pytest.raises(ValueError, match="scale must be positive"):
        sp.Pairwise(sp.roc_auc(), scale=0)
    assert "surrogate='sigmoid', scale=2.0" in repr(
        sp.Pairwise(sp.roc_auc(), surrogate="sigmoid", scale=2)
    )
