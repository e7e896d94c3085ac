"""The true value of problems, against scikit-learn and torchmetrics."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn import metrics
from torchmetrics.classification import (
    BinaryAUROC,
    BinaryAveragePrecision,
    BinaryPrecisionAtFixedRecall,
    BinaryRecallAtFixedPrecision,
    BinarySensitivityAtSpecificity,
    BinarySpecificityAtSensitivity,
)

from setpoint.problems import (
    Problem,
    fnr_at_fpr,
    pr_auc,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    roc_auc,
    tpr_at_fpr,
)
from setpoint.rates import (
    CATALOGUE,
    alerts,
    coverage,
    error,
    f_score,
    fnr,
    fpr,
    jaccard,
    lift,
    precision,
    recall,
    tnr,
    tpr,
)

KINDS = ["plain", "ties", "weighted", "both"]


@pytest.fixture(params=[(kind, seed) for kind in KINDS for seed in range(3)], ids=str)
def data(request):
    """Scores, labels and weights; weights are None or small numbers, with zeros."""
    kind, seed = request.param
    r = np.random.default_rng(seed)
    labels = r.permutation(np.arange(150) % 4 == 0).astype(int)
    scores = r.normal(size=150) + labels
    scores = np.round(scores, 1) if kind in ("ties", "both") else scores
    weights = r.choice([0, 0.5, 1, 2, 3], 150) if kind in ("weighted", "both") else None
    return scores, labels, weights


# ---- areas ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("top", [0.001, 0.01, 0.05, 0.3, 0.77, 1.0])
def test_partial_roc_auc_is_that_of_scikit_learn(data, top):
    s, y, w = data
    expected = metrics.roc_auc_score(y, s, max_fpr=top, sample_weight=w)
    assert_allclose(roc_auc(fpr=(0, top)).evaluate(s, y, weights=w), expected, rtol=1e-12)


def test_average_precision_is_that_of_scikit_learn(data):
    s, y, w = data
    expected = metrics.average_precision_score(y, s, sample_weight=w)
    assert_allclose(pr_auc().evaluate(s, y, weights=w), expected, rtol=1e-12)


@pytest.mark.parametrize("ends", [(0.95, 1.0), (0.0, 0.3), (0.41, 0.42), (0.5, 0.9)])
def test_partial_pr_auc_is_the_mean_precision_over_the_range(data, ends):
    s, y, w = data
    p, r, _ = metrics.precision_recall_curve(y, s, sample_weight=w)
    levels = np.linspace(*ends, 20_001)
    levels = (levels[:-1] + levels[1:]) / 2
    # recall falls along the curve: the last point that still reaches the level is the first cut
    reached = np.searchsorted(-r, -levels, side="right") - 1
    found = pr_auc(recall=ends).evaluate(s, y, weights=w)
    assert_allclose(found, p[reached].mean(), atol=2e-4)  # 20,000 levels miss a step by 1 / 20,000


@pytest.mark.parametrize("ends", [(0.0, 0.05), (0.1, 0.4), (0.3, 1.0)])
def test_partial_roc_auc_between_two_rates_is_the_trapezoid_area(data, ends):
    s, y, w = data
    x, t, _ = metrics.roc_curve(y, s, sample_weight=w, drop_intermediate=False)
    grid = np.unique(np.concatenate([x[(x > ends[0]) & (x < ends[1])], ends]))
    last, first = (np.interp(grid, *curve) for curve in _sides(x, t))
    area = np.sum((last[:-1] + first[1:]) / 2 * np.diff(grid))
    chance = (ends[1] ** 2 - ends[0] ** 2) / 2
    expected = 0.5 * (1 + (area - chance) / (ends[1] - ends[0] - chance))
    assert_allclose(roc_auc(fpr=ends).evaluate(s, y, weights=w), expected, rtol=1e-12)


def _sides(x, t):
    """The curve at the upper and at the lower end of each vertical step."""
    unique = np.unique(x)
    highest = np.array([t[x == u].max() for u in unique])
    lowest = np.array([t[x == u].min() for u in unique])
    # between two rates the line goes from the top of one step to the foot of the next
    upper = (np.repeat(unique, 2), np.column_stack([lowest, highest]).ravel())
    return _at_top(upper, unique, highest), _at_foot(upper, unique, lowest)


def _at_top(curve, unique, highest):
    return _moved(curve, unique, highest)


def _at_foot(curve, unique, lowest):
    return _moved(curve, unique, lowest)


def _moved(curve, unique, values):
    """A curve that has the given value at each of its rates, and is the line between steps."""
    x, t = curve
    return np.concatenate([unique, x]), np.concatenate([values, t])
