"""The true value of problems, against scikit-learn and torchmetrics."""

import tracemalloc

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

import setpoint as sp
from setpoint.rates import CATALOGUE, jaccard, lift

KINDS = ["plain", "ties", "weighted", "both"]


@pytest.fixture(params=KINDS)
def data(request):
    """Scores, labels and weights; weights are None or small numbers, with zeros."""
    kind = request.param
    r = np.random.default_rng(KINDS.index(kind))
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
    assert_allclose(sp.roc_auc(fpr=(0, top)).evaluate(s, y, weights=w), expected, rtol=1e-12)


def test_average_precision_is_that_of_scikit_learn(data):
    s, y, w = data
    expected = metrics.average_precision_score(y, s, sample_weight=w)
    assert_allclose(sp.pr_auc().evaluate(s, y, weights=w), expected, rtol=1e-12)


@pytest.mark.parametrize("ends", [(0.95, 1.0), (0.0, 0.3), (0.41, 0.42), (0.5, 0.9)])
def test_partial_pr_auc_is_the_mean_precision_over_the_range(data, ends):
    s, y, w = data
    p, r, _ = metrics.precision_recall_curve(y, s, sample_weight=w)
    levels = np.linspace(*ends, 20_001)
    levels = (levels[:-1] + levels[1:]) / 2
    # recall falls along the curve: the last point that still reaches the level is the first cut
    reached = np.searchsorted(-r, -levels, side="right") - 1
    found = sp.pr_auc(recall=ends).evaluate(s, y, weights=w)
    assert_allclose(found, p[reached].mean(), atol=2e-4)  # 20,000 levels miss a step by 1 / 20,000


@pytest.mark.parametrize("ends", [(0.01, 0.05), (0.1, 0.4), (0.3, 1.0)])
def test_partial_roc_auc_between_two_rates_is_the_trapezoid_area(data, ends):
    s, y, w = data

    def area(top):  # McClish's scaling of scikit-learn, undone
        scaled = metrics.roc_auc_score(y, s, max_fpr=top, sample_weight=w)
        return (2 * scaled - 1) * (top - top**2 / 2) + top**2 / 2

    low, high = ends
    chance = (high**2 - low**2) / 2
    expected = 0.5 * (1 + (area(high) - area(low) - chance) / (high - low - chance))
    assert_allclose(sp.roc_auc(fpr=ends).evaluate(s, y, weights=w), expected, rtol=1e-10)


def test_a_roc_curve_of_a_slice_is_that_of_its_examples(data):
    s, y, w = data
    group = np.arange(150) % 3
    problem = sp.Problem(maximize=sp.tpr.on(site=1), subject_to=sp.fpr.on(site=1).over(0, 0.3))
    inside = group == 1
    expected = sp.roc_auc(fpr=(0, 0.3)).evaluate(
        s[inside], y[inside], weights=None if w is None else w[inside]
    )
    assert_allclose(problem.evaluate(s, y, weights=w, groups=group), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (sp.Problem(maximize=sp.precision, subject_to=sp.recall.over(0.9, 1)), sp.fnr.over(0, 0.1)),
        (sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.over(0, 0.2)), sp.tnr.over(0.8, 1)),
        (
            sp.Problem(minimize=sp.error, subject_to=sp.coverage.over(0.1, 0.5)),
            sp.alerts.over(15, 75),
        ),
        (sp.Problem(minimize=sp.error, subject_to=sp.fpr.over(0, 0.2)), (2 * sp.fpr).over(0, 0.4)),
    ],
    ids=str,
)
def test_the_same_range_said_in_another_way_has_the_same_area(data, one, other):
    s, y, _ = data
    goal = {"maximize" if one.maximize else "minimize": one.objective}
    again = sp.Problem(**goal, subject_to=other)
    assert_allclose(one.evaluate(s, y), again.evaluate(s, y), rtol=1e-10)


@pytest.mark.parametrize(
    "problem",
    [
        sp.pr_auc(recall=(0.5, 1), points=2000),
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.over(0, 0.3), thresholds=2000),
    ],
    ids=str,
)
def test_an_area_is_the_limit_of_many_thresholds(problem):
    r = np.random.default_rng(0)
    y = np.arange(20_000) % 4 == 0
    s = r.normal(size=20_000) + y
    # a threshold holds the nearest rate, the area the first that reaches: half of 1/5000 apart
    assert_allclose(problem.choose(s, y).value, problem.evaluate(s, y), atol=5e-4)


def test_levels_that_nobody_reaches_are_held_at_the_nearest_cut():
    s, y = [3.0, 2.0, 1.0], [1, 0, 1]
    beyond = sp.Problem(minimize=sp.error, subject_to=sp.alerts.over(2, 10))  # there are three
    within = sp.Problem(minimize=sp.error, subject_to=sp.alerts.over(2, 3))
    at_two, at_three = 2 / 3, 1 / 3
    assert_allclose(within.evaluate(s, y), at_two)  # held from below: two, until three is reached
    assert_allclose(beyond.evaluate(s, y), (at_two + 7 * at_three) / 8)
    below = sp.Problem(minimize=sp.error, subject_to=(sp.fpr + 1).over(0, 2))
    assert_allclose(
        below.evaluate(s, y),
        (at_three + sp.Problem(minimize=sp.error, subject_to=sp.fpr.over(0, 1)).evaluate(s, y)) / 2,
    )


def test_zero_over_zero_counts_as_the_worst_value_of_an_area():
    s, y = [3.0, 2.0, 1.0, 0.0], [0, 1, 0, 1]
    over_fpr = sp.Problem(maximize=sp.precision, subject_to=sp.fpr.over(0, 1))
    assert_allclose(
        over_fpr.evaluate(s, y), 0.5 * 0 + 0.5 * 0.5
    )  # nobody accepted, then one in two
    minimized = sp.Problem(minimize=sp.precision, subject_to=sp.fpr.over(0, 1))
    assert_allclose(minimized.evaluate(s, y), 0.5 * 1 + 0.5 * 0.5)


# ---- one threshold -------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [0.0, 0.01, 0.05, 0.29, 0.5, 1.0])
def test_tpr_at_fpr_is_that_of_the_roc_curve(data, level):
    s, y, w = data
    x, t, _ = metrics.roc_curve(y, s, sample_weight=w, drop_intermediate=False)
    expected = t[x <= level + 1e-12].max()
    assert_allclose(sp.tpr_at_fpr(level).evaluate(s, y, weights=w), expected, rtol=1e-12)
    assert_allclose(sp.fnr_at_fpr(level).evaluate(s, y, weights=w), 1 - expected, atol=1e-12)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.95, 1.0])
def test_precision_at_recall_is_that_of_the_curve(data, level):
    s, y, w = data
    p, r, _ = metrics.precision_recall_curve(y, s, sample_weight=w)
    found = sp.precision_at_recall(level).evaluate(s, y, weights=w)
    assert_allclose(found, p[:-1][r[:-1] >= level - 1e-12].max(), rtol=1e-12)


@pytest.mark.parametrize("level", [0.1, 0.4, 0.6])
def test_recall_at_precision_is_that_of_the_curve(data, level):
    s, y, w = data
    p, r, _ = metrics.precision_recall_curve(y, s, sample_weight=w)
    found = sp.recall_at_precision(level).evaluate(s, y, weights=w)
    assert_allclose(found, r[:-1][p[:-1] >= level - 1e-12].max(), rtol=1e-12)


def test_the_k_highest_scores_are_taken(data):
    s, y, w = data
    if w is None and len(set(s)) == len(s):
        for k in (1, 10, 149, 150):
            expected = y[np.argsort(-s)[:k]].mean()
            assert_allclose(sp.precision_at_k(k).evaluate(s, y), expected, rtol=1e-12)
        assert_allclose(
            sp.precision_at_k(1, of=15).evaluate(s, y), sp.precision_at_k(10).evaluate(s, y)
        )


BEST = {
    "f_score(1)": (sp.f_score(1), metrics.f1_score),
    "f_score(2)": (sp.f_score(2), lambda *a, **k: metrics.fbeta_score(*a, beta=2, **k)),
    "jaccard": (jaccard, metrics.jaccard_score),
    "accuracy": (CATALOGUE["accuracy"], metrics.accuracy_score),
    "1 - balanced_error": (1 - CATALOGUE["balanced_error"], metrics.balanced_accuracy_score),
}


@pytest.mark.parametrize("name", BEST)
def test_without_constraint_the_best_threshold_of_all_is_taken(data, name):
    s, y, w = (x if x is None else x[:40] for x in data)
    objective, score = BEST[name]
    cuts = [-np.inf, *np.unique(s)]
    values = [score(y, s > t, sample_weight=w) for t in cuts]
    found = sp.Problem(maximize=objective).choose(s, y, w)
    assert_allclose(found.value, max(values), rtol=1e-12)
    assert_allclose(score(y, s > found.thresholds[0], sample_weight=w), max(values), rtol=1e-12)


@pytest.mark.parametrize("rate", [*CATALOGUE.values(), sp.f_score(2)], ids=str)
def test_at_given_thresholds_the_value_is_that_of_the_decisions(data, rate):
    from rates.test_catalogue import BY_SKLEARN  # the formulas the catalogue is tested with

    s, y, w = data
    score = BY_SKLEARN.get(str(rate), lambda *a, **k: metrics.fbeta_score(*a, beta=2, **k))
    w = np.ones_like(s) if w is None else w
    for threshold in (-np.inf, -0.3, 0.5, 1.0):
        decisions = (s > threshold).astype(int)
        if decisions.all() and str(rate) == "npv":
            continue
        expected = score(y, decisions, sample_weight=w)
        assert_allclose(
            sp.Problem(minimize=rate).evaluate(s, y, threshold, w), expected, rtol=1e-12
        )


# ---- torchmetrics --------------------------------------------------------------------------------
@pytest.fixture(params=[(ties, seed) for ties in (False, True) for seed in range(2)], ids=str)
def probabilities(request):
    """Scores between 0 and 1, in float32.

    Torchmetrics counts in float32 and decides by ``score >= t``: areas and best rates do not depend
    on it, the thresholds it reports do.
    """
    ties, seed = request.param
    r = np.random.default_rng(seed)
    labels = r.permutation(np.arange(120) % 4 == 0).astype(int)
    scores = 1 / (1 + np.exp(-r.normal(size=120) - labels))
    scores = np.round(scores, 2 if ties else 7)
    return torch.tensor(scores, dtype=torch.float32), torch.tensor(labels)


def test_areas_are_those_of_torchmetrics(probabilities):
    s, y = probabilities
    for top in (0.05, 0.3, 0.9):
        expected = BinaryAUROC(max_fpr=top)(s, y).item()
        assert_allclose(sp.roc_auc(fpr=(0, top)).evaluate(s, y), expected, rtol=1e-5)
    assert_allclose(sp.roc_auc().evaluate(s, y), BinaryAUROC()(s, y).item(), rtol=1e-6)
    assert_allclose(sp.pr_auc().evaluate(s, y), BinaryAveragePrecision()(s, y).item(), rtol=1e-6)


@pytest.mark.parametrize("level", [0.1, 0.35, 0.5, 0.9])
def test_fixed_rates_are_those_of_torchmetrics(probabilities, level):
    s, y = probabilities
    for metric, problem in [
        (BinaryPrecisionAtFixedRecall(min_recall=level), sp.precision_at_recall(level)),
        (
            BinarySensitivityAtSpecificity(min_specificity=level),
            sp.Problem(maximize=sp.tpr, subject_to=sp.tnr >= level),
        ),
        (
            BinarySpecificityAtSensitivity(min_sensitivity=level),
            sp.Problem(maximize=sp.tnr, subject_to=sp.tpr >= level),
        ),
        *(
            [(BinaryRecallAtFixedPrecision(min_precision=level), sp.recall_at_precision(level))]
            if level < 0.6
            else []
        ),
    ]:
        value, threshold = metric(s, y)
        assert_allclose(problem.evaluate(s, y), value.item(), rtol=1e-5)
        # their threshold is a score that is accepted; just below it we decide the same
        below = np.nextafter(threshold.item(), 0.0)
        assert_allclose(problem.evaluate(s, y, below), value.item(), rtol=1e-5)


def test_where_torchmetrics_answers_zero_we_say_that_it_cannot_be_done():
    s, y = torch.tensor([0.9, 0.5, 0.1]), torch.tensor([0, 1, 0])
    value, _ = BinaryRecallAtFixedPrecision(min_precision=0.9)(s, y)
    assert value == 0
    with pytest.raises(ValueError, match=r"No threshold reaches `precision >= 0\.9`"):
        sp.recall_at_precision(0.9).evaluate(s, y)


# ---- kinds of input ------------------------------------------------------------------------------
PROBLEMS = [
    sp.fnr_at_fpr(0.1),
    sp.precision_at_recall(0.8),
    sp.roc_auc(fpr=(0, 0.3)),
    sp.pr_auc(recall=(0.5, 1)),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(maximize=lift, subject_to=sp.coverage <= 0.3),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_every_kind_of_array_gives_the_same_value(problem):
    r = np.random.default_rng(0)
    labels = np.arange(60) % 3 == 0
    scores = r.integers(-20, 20, 60) / 4 + labels  # exact in every precision
    expected = problem.evaluate(scores, labels)
    kinds = [
        *((scores.astype(t), labels) for t in (np.float16, np.float32, np.longdouble)),
        *(
            (torch.tensor(scores, dtype=t), labels)
            for t in (torch.float16, torch.bfloat16, torch.float32)
        ),
        *((scores, labels.astype(t)) for t in (np.int8, np.uint8, np.int64, np.float32, bool)),
        *((scores, torch.tensor(labels).to(t)) for t in (torch.bool, torch.int32, torch.bfloat16)),
        (scores[:, None], labels),
        (scores[:, None], labels[:, None]),
        (torch.tensor(scores)[:, None], torch.tensor(labels)),
        (torch.tensor(scores, requires_grad=True), torch.tensor(labels)),
        ((4 * scores).astype(int), labels),
        (torch.tensor(4 * scores).int(), labels),
        (scores.tolist(), labels.tolist()),
        (scores[::-1], labels[::-1]),
    ]
    for s, y in kinds:
        assert problem.evaluate(s, y) == expected
    for w in (np.full(60, 2), torch.full((60, 1), 3.0), [0.25] * 60, np.ones(60, bool)):
        assert_allclose(problem.evaluate(scores, labels, weights=w), expected, rtol=1e-12)


def test_thresholds_may_be_a_number_a_list_an_array_or_a_tensor():
    s, y = [3.0, 2.0, 1.0], [1, 0, 1]
    for t in (
        1.5,
        [1.5],
        (1.5,),
        np.array(1.5),
        torch.tensor(1.5),
        torch.tensor([1.5]),
        np.float32(1.5),
    ):
        assert sp.Problem(maximize=sp.recall).evaluate(s, y, thresholds=t) == 0.5
    two = sp.roc_auc(points=2)
    assert two.evaluate(s, y, thresholds=[2.5, 0.5]) == 0.75
    assert two.evaluate(s, y, thresholds=torch.tensor([2.5, -torch.inf])) == 0.75


def test_thresholds_chosen_elsewhere_are_used_as_they_are():
    s, y = np.array([3.0, 2.0, 1.0, 0.0]), [1, 0, 1, 0]
    problem = sp.precision_at_recall(0.9)
    (threshold,) = problem.choose(s, y).thresholds
    assert problem.evaluate(s + 10, y, threshold) == 0.5  # all accepted
    assert problem.evaluate(s - 10, y, threshold) == 0.0  # none: 0/0 is the worst value


def test_groups_pick_the_examples_of_a_slice():
    s, y = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 1, 0, 1])
    sex, site = np.array(["f", "m", "f", "m"]), [1, 2, 2, 2]
    on_f, on_2 = sp.recall.on(sex="f"), sp.recall.on(site=2)
    assert sp.Problem(maximize=on_f).evaluate(s, y, 3.5, groups=sex) == 1
    assert sp.Problem(maximize=on_2).evaluate(s, y, 2.5, groups=torch.tensor(site)) == 0.5
    assert sp.Problem(maximize=on_2).evaluate(s, y, 2.5, groups=np.array(site)[:, None]) == 0.5
    both = {"sex": sex, "site": torch.tensor(site)}
    assert (
        sp.Problem(maximize=sp.recall.on(sex="m", site=2)).evaluate(s, y, 2.5, groups=both) == 0.5
    )
    assert sp.Problem(minimize=abs(on_f - on_2)).evaluate(s, y, 2.5, groups=both) == 0.5


def test_one_threshold_per_group_is_used_for_its_group():
    s, y, g = [4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0], ["a", "a", "b", "b"]
    problem = sp.Problem(
        minimize=sp.error, subject_to=sp.fpr.on(group="a") <= 0.5, thresholds="per group"
    )
    assert problem.evaluate(s, y, {"a": 3.5, "b": 1.5}, groups=g) == 0
    assert (
        problem.evaluate(s, y, {"a": -np.inf, "b": 1.5, "unused": 0}, groups={"group": g}) == 0.25
    )
    by_site = sp.Problem(
        minimize=sp.error, subject_to=sp.fpr.on(site=1) <= 0.5, thresholds="per group"
    )
    assert (
        by_site.evaluate(s, y, {1: 3.5, 2: 1.5}, groups={"site": torch.tensor([1, 1, 2, 2])}) == 0
    )
    with pytest.raises(ValueError, match="group = b, a group that the problem names nowhere"):
        problem.evaluate(s, y, groups=g)


def test_many_scores_and_thresholds_are_scanned_in_bounded_memory():
    r = np.random.default_rng(0)
    y = r.random(100_000) < 0.1
    s = r.normal(size=100_000) + y
    swept = sp.Problem(minimize=abs(sp.fpr - 0.5), subject_to=sp.recall.over(0, 1), thresholds=100)
    tracemalloc.start()
    found = swept.choose(s, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.thresholds) == 100
    assert peak < 200e6  # all cuts of all thresholds at once take 270 MB
