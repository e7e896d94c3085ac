"""One scan for one output or several: by order statistics, by bisection, or over all cuts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import GROUPS, examples, problems, rates

import setpoint as sp
from setpoint.axes import scan
from setpoint.axes.arrays import quiet
from setpoint.axes.cuts import Cuts
from setpoint.axes.order_statistics import lowest_permitted
from setpoint.axes.sample import read_sample
from setpoint.axes.scan import holds, place
from setpoint.rates import CATALOGUE, ONE, Range, alerts, lift

FIELDS = ("cut", "threshold", "marginal")


def draw(seed, c=1, n=40, ties=False, weighted=False):
    """Scores [c, n] and the masks of both classes for everyone and two groups."""
    r = np.random.default_rng(seed)
    scores = r.integers(0, 8, (c, n)).astype(float) if ties else r.normal(size=(c, n))
    labels, groups = r.integers(0, 2, (c, n)), r.integers(0, 2, n)
    weights = r.choice([0, 0.5, 1, 2], (c, n)) if weighted else np.ones((c, n))
    inside = {GROUPS[0]: np.ones(n), GROUPS[1]: groups == 0, GROUPS[2]: groups == 1}
    return scores, {
        w: (weights * m * labels, weights * m * (1 - labels)) for w, m in inside.items()
    }


def same(one, two, rows=slice(None)):
    """Whether two placements are one, or one is some rows of the other."""
    shape = np.asarray(two.cut).shape
    pairs = [(getattr(one, field), getattr(two, field)) for field in FIELDS]
    for a, b in [*pairs, *zip(one.holding, two.holding, strict=True)]:
        assert_array_equal(a, np.broadcast_to(b, shape)[rows])
    assert_allclose(one.violation, two.violation[rows], atol=1e-9)


SOME = [
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.1),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.7),
    sp.Problem(maximize=sp.recall, subject_to=sp.precision >= 0.6),
    sp.Problem(maximize=sp.f_score(2)),
    sp.Problem(minimize=sp.error, subject_to=[sp.fpr <= 0.3, sp.fnr <= 0.5]),
    sp.Problem(minimize=abs(sp.fpr - 0.5), subject_to=sp.recall.at(0.5)),
    sp.Problem(
        minimize=sp.fnr,
        subject_to=abs(sp.coverage.on(group="a") - sp.coverage.on(group="b")) <= 0.1,
    ),
    sp.Problem(minimize=sp.fnr.on(group="b"), subject_to=sp.fpr.on(group="a").at(0.3)),
    sp.Problem(
        maximize=sp.precision, subject_to=sp.recall.on(group="a").over(0.2, 0.9), thresholds=4
    ),
    sp.Problem(maximize=CATALOGUE["prevalence"]),
    sp.precision_at_k(7),
    sp.roc_auc(fpr=(0, 0.3), points=6),
    sp.pr_auc(recall=(0.5, 1), points=5),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
@pytest.mark.parametrize("problem", SOME, ids=str)
def test_several_outputs_place_as_each_alone(problem, ties, weighted):
    scores, masks = draw(3, c=3, ties=ties, weighted=weighted)
    together = place(Cuts.sort(scores, masks), problem)
    for row in range(3):
        part = slice(row, row + 1)
        alone = {w: (p[part], q[part]) for w, (p, q) in masks.items()}
        same(place(Cuts.sort(scores[part], alone), problem), together, part)


# ---- two paths to a setpoint ---------------------------------------------------------------------
EVEN = [
    sp.fpr,
    sp.fnr,
    sp.precision,
    sp.error,
    sp.f_score(0.5),
    CATALOGUE["balanced_error"],
    lift,
    sp.fpr - 3 * sp.fnr,
]


def by_both_paths(problem, data):
    (hold,) = targets = holds(problem)
    assert hold.sorts
    fast = place(Cuts.sort(*data), problem, targets)
    same(fast, place(Cuts.sort(*data), problem, [replace(hold, sorts=False)]))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
@pytest.mark.parametrize("held", [sp.fpr, sp.fnr, sp.tnr, sp.recall, sp.coverage], ids=str)
def test_bisection_finds_what_the_scan_of_all_cuts_finds(held, ties, weighted):
    for seed in range(2):
        data = draw(seed, c=2, n=25, ties=ties, weighted=weighted)
        for objective in EVEN:
            for word in ("minimize", "maximize"):
                goal = {word: objective}
                swept = sp.Problem(**goal, subject_to=held.over(0, 1), thresholds=7)
                by_both_paths(swept, data)


@examples(300)
@given(
    rates(tame=True, sliced=False),
    rates(tame=True, sliced=False),
    st.sampled_from([0.01, 0.2, 0.25, 1 / 3, 0.5, 0.7, 0.99, 2, 3.5]),
    st.integers(0, 99),
)
def test_bisection_agrees_for_any_rate_it_is_used_for(held, objective, level, seed):
    level = level % 1 or 0.5 if held.is_share else level
    problem = sp.Problem(minimize=objective, subject_to=held.at(level))
    if holds(problem)[0].sorts:
        by_both_paths(problem, draw(seed, n=15, ties=seed % 2 == 0, weighted=seed % 3 == 0))


@pytest.mark.parametrize(
    ("objective", "held", "sorts"),
    [
        (sp.fnr, sp.fpr, True),
        (sp.precision, sp.recall, True),
        (lift, sp.recall, True),
        (sp.fnr + sp.fpr, sp.fpr, True),
        (
            abs(sp.fpr - 0.5),
            sp.coverage,
            True,
        ),  # every example moves the coverage: no choice is left
        (abs(sp.fpr - 0.5), sp.recall, False),  # best in the middle
        (sp.maximum(sp.fpr, 0.3), sp.recall, False),  # equal for a while
        (sp.fpr.on(group="a"), sp.recall, False),
        (sp.precision + sp.fpr, sp.recall, False),
        (sp.Rate(sp.TP, sp.TP - sp.FP), sp.recall, False),  # a pole
        (sp.fnr, sp.fpr.on(group="a"), False),
        (sp.fnr, sp.precision, False),
        (sp.fnr, sp.fpr + sp.recall, False),
        (sp.fnr, sp.Rate(sp.TP + 2 * sp.FP, ONE), False),
    ],
    ids=str,
)
def test_bisection_is_used_only_where_it_is_right(objective, held, sorts):
    (hold,) = holds(sp.Problem(minimize=objective, subject_to=held.at(0.4)))
    assert hold.sorts == sorts


def test_bounds_are_never_bisected():
    assert not any(
        hold.sorts for hold in holds(sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.1))
    )


# ---- order statistics ----------------------------------------------------------------------------
def sample_of(seed, problem, c=1, n=15, ties=False, weighted=False, missing=False):
    """A sample, weighted by example, by class or not at all."""
    r = np.random.default_rng(seed)
    scores = r.integers(0, 8, (n, c)).astype(float) if ties else r.normal(size=(n, c))
    labels = r.integers(0, 2, (n, c)) * (not missing)
    weights = None
    if weighted:
        by_class = np.where(labels > 0, 0.3, 0.7)
        weights = by_class if seed % 2 else r.choice([0, 0.5, 1, 2], (n, c))
    return read_sample(problem.slices, scores, labels, weights)


@examples(600)
@example(sp.tnr, CATALOGUE["prevalence"], "at", "minimize", 0.01, 739)  # weights of 0.7 add up
@given(
    rates(tame=True, sliced=False),
    rates(tame=True, sliced=False),
    st.sampled_from(["<=", ">=", "at"]),
    st.sampled_from(["minimize", "maximize"]),
    st.sampled_from([0.01, 0.2, 0.25, 1 / 3, 0.5, 0.7, 0.99, 2, 3.5]),
    st.integers(0, 999),
)
def test_an_order_statistic_is_what_the_scan_finds(held, objective, sense, word, level, seed):
    level = level % 1 or 0.5 if held.is_share else level
    bounds = {"<=": held <= level, ">=": held >= level, "at": held.at(level)}
    problem = sp.Problem(**{word: objective}, subject_to=bounds[sense])
    _check_order_statistic(problem, seed)


CAPPED = [
    sp.fpr <= 0.3,
    sp.tnr >= 0.7,
    sp.coverage <= 0.3,
    sp.fpr.at(0.2),
    sp.tnr.at(0.45),
    sp.coverage.at(0.3),
]
CAPPED += [
    alerts <= 4,
    alerts.at(4),
    sp.fpr.over(0, 0.9),
    sp.coverage.over(0, 1),
    sp.tnr.over(0.3, 0.8),
]


@pytest.mark.parametrize("target", CAPPED, ids=str)
def test_caps_are_order_statistics(target):
    points = {"thresholds": 7} if isinstance(target, Range) else {}
    for objective in ({"minimize": sp.fnr}, {"maximize": sp.recall}, {"maximize": sp.coverage}):
        problem = sp.Problem(**objective, subject_to=target, **points)
        assert sum(_check_order_statistic(problem, seed) for seed in range(60)) > 15


def _check_order_statistic(problem, seed):
    """Whether there is an order statistic; if so, the scan has found the same thresholds."""
    (hold,) = holds(problem)
    if hold.counted is None:
        return False
    how = {"ties": seed % 3 == 0, "weighted": seed % 4 > 1, "missing": seed % 11 == 0}
    sample = sample_of(seed, problem, c=1 + seed % 2, **how)
    with quiet():
        found = lowest_permitted(sample, hold)
    if found is None:
        return False
    scanned = place(sample.cuts, problem, [replace(hold, counted=None)])
    assert_array_equal(found.threshold, scanned.threshold)
    assert_array_equal(found.marginal, scanned.marginal)
    assert_array_equal(found.holding[0], scanned.holding[0])
    return True


@pytest.mark.parametrize(
    ("problem", "counted"),
    [
        (sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.1), (1,)),
        (sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.1), (0, 1)),
        (sp.Problem(maximize=sp.recall, subject_to=sp.tnr >= 0.9), (1,)),
        (sp.roc_auc(fpr=(0, 0.3), points=6), (1,)),
        (sp.precision_at_k(7), (0, 1)),
        (
            sp.Problem(maximize=sp.precision, subject_to=sp.fpr <= 0.1),
            (),
        ),  # fewer may be more precise
        (sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.9), ()),
        (sp.Problem(minimize=sp.fpr, subject_to=sp.recall >= 0.9), ()),  # a floor
        (sp.Problem(minimize=sp.fnr, subject_to=[sp.fpr <= 0.1, sp.coverage <= 0.2]), ()),
        (sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group="a") <= 0.1), ()),
        (sp.Problem(minimize=sp.fnr, subject_to=sp.Rate(sp.TP + 2 * sp.FP, ONE) <= 9), ()),
    ],
    ids=str,
)
def test_order_statistics_are_used_only_where_they_are_right(problem, counted):
    found = holds(problem)[0].counted
    assert (() if found is None else found.classes) == counted


# ---- what a placement promises -------------------------------------------------------------------
@examples(300)
@given(problems(tame=True, kinds=("free", "bounds", "setpoint", "range")), st.integers(0, 99))
def test_the_threshold_makes_the_cut_and_the_marginal_score_is_beside_it(problem, seed):
    scores, masks = draw(seed, n=14, ties=seed % 2 == 0, weighted=seed % 3 == 0)
    placed = place(Cuts.sort(scores, masks), problem)
    present = np.sort(scores[0][sum(masks[()])[0] > 0])[::-1]
    for cut, threshold, marginal in zip(
        placed.cut[0], placed.threshold[0], placed.marginal[0], strict=True
    ):
        assert np.sum(present > threshold) == cut
        assert marginal in present
        neighbours = {present[max(cut - 1, 0)], present[min(cut, len(present) - 1)]}
        assert marginal in neighbours
    for held in placed.holding:
        assert held.dtype == bool
    assert np.all(sum(placed.holding) <= 1) if placed.holding else True


def neighbours(start, count=9):
    scores = [start]
    for _ in range(count - 1):
        scores.append(np.nextafter(scores[-1], np.inf))
    return scores


@pytest.mark.parametrize(
    "scores",
    [neighbours(1.0), neighbours(0.0), neighbours(-3.0), [k * 1e307 for k in range(9, 18)]],
    ids=["1", "0", "-3", "1e307"],
)
def test_a_threshold_fits_between_any_two_scores(scores):
    """Between neighbouring floats there is no middle, and the sum of large ones is infinite."""
    scores = np.array([scores])
    for positives in range(1, 9):
        labels = (np.arange(9)[None] >= 9 - positives) * 1.0
        cuts = Cuts.sort(scores, {(): (labels, 1 - labels)})
        placed = place(cuts, sp.Problem(maximize=sp.f_score(2)))
        assert placed.cut.item() == positives
        assert np.sum(scores > placed.threshold.item()) == positives


def test_the_first_bound_that_stops_a_threshold_holds_it():
    scores, labels = np.array([[9.0, 7, 4, 3, 1]]), np.array([[1.0, 0, 1, 0, 0]])
    cuts = Cuts.sort(scores, {(): (labels, 1 - labels)})
    both = place(
        cuts,
        sp.Problem(minimize=sp.fnr, subject_to=[sp.error <= 1, sp.fpr <= 0.34, sp.coverage <= 0.6]),
    )
    assert [bool(h.squeeze()) for h in both.holding] == [False, True, False]
    slack = place(cuts, sp.Problem(maximize=sp.f_score(1), subject_to=sp.fpr <= 0.9))
    assert not slack.holding[0].any()
    floor = place(cuts, sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 1))
    assert floor.holding[0].all()
    assert (floor.marginal, floor.threshold) == (4.0, 3.5)


def test_many_thresholds_are_scanned_in_turns(monkeypatch):
    data = draw(0, c=2, n=30)
    problem = sp.Problem(
        maximize=abs(sp.recall - sp.fpr), subject_to=sp.fnr.over(0, 1), thresholds=9
    )
    assert not holds(problem)[0].sorts
    at_once = place(Cuts.sort(*data), problem)
    monkeypatch.setattr(scan, "CUTS_AT_ONCE", 2 * 31 * 2)
    same(place(Cuts.sort(*data), problem), at_once)


def test_nobody_is_no_trouble():
    nobody = {(): (np.zeros((1, 3)), np.zeros((1, 3)))}
    for problem in SOME[:6]:
        placed = place(Cuts.sort(np.ones((1, 3)), nobody), problem)
        assert placed.cut.tolist() == [[0]]


def test_ranks_are_clamped_to_those_who_are_there():
    weights = np.array([[1.0, 0, 1, 0]])
    cuts = Cuts.sort(np.array([[4.0, 3, 2, 1]]), {(): (weights, 0 * weights)})
    assert cuts.score(np.array([[-1, 0, 1, 2, 9]])).tolist() == [[4, 4, 2, 2, 2]]


def test_placing_is_silent_about_zero_over_zero():
    scores, masks = draw(0)
    only_positives = {w: (p + q, 0 * q) for w, (p, q) in masks.items()}
    for problem in SOME:
        place(Cuts.sort(scores, only_positives), problem)  # a warning would be an error


def test_tables_at_a_cut_are_those_of_all_cuts():
    scores, masks = draw(0, c=2, weighted=True)
    cuts = Cuts.sort(scores, masks)
    cut = np.array([[0, 5, 40], [1, 2, 39]])
    for where, table in cuts.tables().items():
        at = cuts.tables_at(cut)[where]
        for field in ("tp", "fp", "fn", "tn"):
            assert_array_equal(
                np.take_along_axis(getattr(table, field)[:, 0], cut, -1), getattr(at, field)
            )
