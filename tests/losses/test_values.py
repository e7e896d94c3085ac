"""Each loss against its definition, written out in full, and against the metric it bounds."""

import itertools

import pytest
import torch
from losses.draws import BINARY, LOSSES, PARTITION, draw, value_and_gradient
from torch.testing import assert_close

from setpoint import Problem, error, f_score, precision, precision_at_recall, roc_auc
from setpoint.losses import (
    auc_loss,
    f_score_loss,
    multiclass_auc_loss,
    partial_auc_loss,
    precision_at_recall_loss,
    structural_loss,
)
from setpoint.rates import Counts, jaccard

seeds = pytest.mark.parametrize("seed", range(4))
with_and_without_ties = pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
EXACT = {"rtol": 1e-12, "atol": 1e-14}


def pairs(scores, labels, weights):
    """Differences of all pairs, and their weights."""
    high, low = labels == 1, labels == 0
    shares = weights[high][:, None] * weights[low]
    return scores[high][:, None] - scores[low], shares / shares.sum()


@seeds
@with_and_without_ties
def test_auc_is_the_mean_over_pairs(seed, ties):
    scores, labels, weights = draw("auc", n=60, seed=seed, ties=ties)
    d, shares = pairs(scores, labels, weights)
    hinge = (1 - d / 1.5).clamp(min=0)
    assert_close(
        auc_loss(scores, labels, weights=weights, margin=1.5), (shares * hinge).sum(), **EXACT
    )
    ramp = auc_loss(scores, labels, weights=weights, margin=1.5, surrogate="ramp")
    assert_close(ramp, (shares * hinge.clamp(max=1)).sum(), **EXACT)


@seeds
def test_a_narrow_ramp_is_one_minus_the_area(seed):
    scores, labels, weights = draw("auc", n=60, seed=seed)
    loss = auc_loss(scores, labels, weights=weights, margin=1e-9, surrogate="ramp")
    d, shares = pairs(scores, labels, weights)
    assert_close(loss, (shares * (d <= 0)).sum(), **EXACT)


@seeds
@with_and_without_ties
def test_partial_areas_add_up_to_the_whole(seed, ties):
    scores, labels, weights = draw("auc", n=50, seed=seed, ties=ties)
    ends = (0, 0.07, 0.35, 1)
    parts = [
        (high - low) * partial_auc_loss(scores, labels, fpr=(low, high), weights=weights)
        for low, high in itertools.pairwise(ends)
    ]
    assert_close(sum(parts), auc_loss(scores, labels, weights=weights), **EXACT)


@seeds
def test_a_partial_area_is_that_of_the_highest_negatives(seed):
    scores, labels, _ = draw("auc", n=90, seed=seed)
    low = scores[labels == 0].sort(descending=True).values
    k = round(0.3 * len(low))
    kept = torch.cat([scores[labels == 1], low[:k]])
    binary = torch.cat([torch.ones(len(kept) - k), torch.zeros(k)])
    loss = partial_auc_loss(scores, labels, fpr=(0, k / len(low)))
    assert_close(loss, auc_loss(kept, binary), **EXACT)


@seeds
def test_two_classes_are_a_binary_problem(seed):
    scores, labels, weights = draw("auc", n=40, seed=seed)
    columns = torch.stack([0.3 * scores, 1.3 * scores], 1)
    binary = auc_loss(scores, labels, weights=weights)
    assert_close(multiclass_auc_loss(columns, labels, weights=weights), binary, **EXACT)
    steep = torch.stack([-scores, scores], 1)
    every = multiclass_auc_loss(steep, labels, weights=weights, kind="one_vs_all")
    assert_close(every, binary, **EXACT)


@seeds
def test_mu_follows_kleiman_and_page(seed):
    """Their orientation, pair by pair, in the unit of a difference of two scores."""
    scores, labels, _ = draw("mu", n=20, seed=seed)
    costs, losses = torch.tensor(PARTITION, dtype=torch.float64), []
    for k, j in itertools.combinations(range(3), 2):
        v = costs[k] - costs[j]
        across = v[k] - v[j]
        orientations = [
            across * (v @ one - v @ other)
            for one in scores[labels == k]
            for other in scores[labels == j]
        ]
        losses.append((1 - 2 * torch.stack(orientations) / across**2).clamp(min=0).mean())
    loss = multiclass_auc_loss(scores, labels, partition=PARTITION)
    assert_close(loss, torch.stack(losses).mean(), **EXACT)
    scaled = multiclass_auc_loss(scores, labels, partition=[[40 * x for x in r] for r in PARTITION])
    assert_close(scaled, loss, **EXACT)


def test_classes_that_are_missing_do_not_count():
    scores, labels, _ = draw("mu")
    two, kept = scores[labels != 2], labels[labels != 2]
    assert_close(
        multiclass_auc_loss(two, kept), multiclass_auc_loss(two[:, :2], kept), rtol=0, atol=1e-15
    )
    value, gradient = value_and_gradient(multiclass_auc_loss, scores, torch.zeros(len(scores)))
    assert value == 0
    assert not gradient.any()


@seeds
@with_and_without_ties
def test_losses_bound_their_metrics(seed, ties):
    scores, labels, weights = draw("f1", n=80, seed=seed, ties=ties)
    s, y, w = scores.numpy(), labels.numpy(), weights.numpy()

    def gap(loss, value, **options):
        return loss(scores, labels, weights=weights, **options).item() - (1 - value)

    assert gap(auc_loss, roc_auc().evaluate(s, y, weights=w)) >= -1e-12
    assert gap(auc_loss, roc_auc().evaluate(s, y, weights=w), surrogate="ramp") >= -1e-12
    for rate, name in ((f_score(1), "f1"), (jaccard, "jaccard")):
        best = Problem(maximize=rate)
        assert gap(BINARY[name], best.evaluate(s, y, [0.0], weights=w)) >= -1e-12
        assert gap(BINARY[f"{name} at its best"], best.evaluate(s, y, weights=w)) >= -1e-12
        value = best.evaluate(s, y, [0.0], weights=w)
        assert gap(structural_loss, value, metric=rate) >= -1e-12
    at_recall = precision_at_recall(0.7).evaluate(s, y, weights=w)
    assert gap(precision_at_recall_loss, at_recall, recall=0.7) >= -1e-12


def test_far_from_the_margin_the_bounds_are_the_metrics():
    """Scores of plus or minus 9: 2 of 10 positives missed, 3 of 20 negatives accepted."""
    labels = torch.tensor([1] * 10 + [0] * 20)
    scores = 9.0 * torch.tensor([1] * 8 + [-1] * 2 + [1] * 3 + [-1] * 17, dtype=torch.float64)
    ramp = auc_loss(scores, labels, surrogate="ramp")  # pairs in a tie cost 1
    assert ramp.item() == pytest.approx((2 * 20 + 8 * 3) / 200)
    structural = structural_loss(scores.sign() * 1e-9, labels, metric=precision)
    assert structural.item() >= 3 / 11


@seeds
def test_the_structural_hinge_is_the_worst_of_all_decisions(seed):
    scores, labels, _ = draw("f1", n=10, seed=seed)
    positives, negatives = float(labels.sum()), float((labels == 0).sum())
    for metric, prices in ((f_score(2), (4 / 5, 1 / 5)), (jaccard, (1, 1))):
        worst = 0.0
        for decided in itertools.product([0, 1], repeat=10):
            yes = torch.tensor(decided)
            missed, alarm = (labels == 1) & (yes == 0), (labels == 0) & (yes == 1)
            a, b = float(missed.sum()), float(alarm.sum())
            table = Counts(positives - a, b, a, negatives - b, positives, negatives)
            against = prices[0] * scores[missed].sum() - prices[1] * scores[alarm].sum()
            worst = max(worst, 1 - metric.of({(): table}) - against.item() / positives)
        loss = structural_loss(scores, labels, metric=metric)
        assert loss.item() == pytest.approx(worst, abs=1e-12)


@seeds
def test_the_structural_hinge_of_the_error_is_the_mean_hinge(seed):
    scores, labels, weights = draw("f1", n=40, seed=seed)
    signs = 2.0 * labels - 1
    hinge = (weights * (1 - signs * scores / 0.7).clamp(min=0)).sum() / weights.sum()
    loss = structural_loss(scores, labels, metric=error, weights=weights, margin=0.7)
    assert_close(loss, hinge, **EXACT)


@seeds
@pytest.mark.parametrize("beta", [0.5, 1])
def test_the_best_threshold_beats_all_others(beta, seed):
    scores, labels, weights = draw("f1", n=30, seed=seed)
    best = f_score_loss(scores, labels, weights=weights, beta=beta, threshold="best").item()
    u = scores - torch.linspace(-6, 6, 4001, dtype=torch.float64)[:, None]
    found = (u.clamp(max=1) * weights * (labels == 1)).sum(1).clamp(min=0)
    alarms = ((1 + u).clamp(min=0) * weights * (labels == 0)).sum(1)
    positives = weights[labels == 1].sum()
    values = 1 - (1 + beta**2) * found / (beta**2 * positives + found + alarms)
    assert best - 1e-12 <= values.min().item() <= best + 5e-3  # the grid's step is 3e-3


@seeds
@pytest.mark.parametrize("recall", [0.35, 0.8, 1.0])
def test_the_threshold_of_precision_at_recall_beats_all_others(recall, seed):
    scores, labels, weights = draw("f1", n=30, seed=seed)
    loss = precision_at_recall_loss(scores, labels, recall=recall, weights=weights, objective="fpr")
    high, low = labels == 1, labels == 0
    t = torch.linspace(-8, 6, 7001, dtype=torch.float64)[:, None]
    misses = (weights[high] * (1 - scores[high] + t).clamp(min=0)).sum(1)
    alarms = (weights[low] * (1 + scores[low] - t).clamp(min=0)).sum(1) / weights[low].sum()
    least = alarms[misses <= (1 - recall) * weights[high].sum()].min()
    assert loss - 1e-12 <= least <= loss + 5e-3  # the grid's step is 2e-3


# ---- where the gradient is, and where it is not -----------------------------------------------


def test_the_hinge_pulls_at_misranked_pairs_and_a_narrow_ramp_does_not():
    scores = torch.tensor([0.0, 0.5], dtype=torch.float64)
    labels = torch.tensor([1, 0])
    _, hinge = value_and_gradient(auc_loss, scores, labels)
    assert_close(hinge, torch.tensor([-1.0, 1.0]).double())
    value, ramp = value_and_gradient(
        lambda s, y: auc_loss(s, y, margin=0.01, surrogate="ramp"), scores, labels
    )
    assert value == 1
    assert not ramp.any()


def test_below_the_threshold_the_lift_pulls_up_positives_only():
    scores = torch.tensor([-2.0, -1.0, -3.0, 0.5], dtype=torch.float64)
    labels = torch.tensor([1, 1, 0, 0])
    value, gradient = value_and_gradient(LOSSES["f1"], scores, labels)
    assert value == 1 + 3  # three below nothing found, at a slope of 2 / P
    assert_close(gradient, torch.tensor([-1.0, -1, 0, 0]).double())
    value, gradient = value_and_gradient(
        lambda s, y: f_score_loss(s, y, threshold=0.0, lift=False), scores, labels
    )
    assert value == 1
    assert not gradient.any()


def test_at_zero_scores_every_default_pulls():
    for name in ("auc", "partial auc from 0", "f1", "jaccard", "structural f1", "f1 at its best"):
        labels = torch.tensor([1, 1, 0, 0, 0])
        _, gradient = value_and_gradient(BINARY[name], torch.zeros(5).double(), labels)
        assert gradient[:2].sum() < 0, name
