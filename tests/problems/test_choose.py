"""Choosing thresholds, against trying them all."""

import math
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems.reference import best, cuts
from strategies import examples, problems
from subjects import CHOOSABLE as USUAL

import setpoint as sp
from setpoint.rates import ONE

ONE_THRESHOLD = ("free", "bounds", "setpoint")


def data(r: Random, n=None, ties=None):
    """Scores, labels, weights and groups; few values and so many ties, or none."""
    n = n or r.randrange(1, 11)
    ties = r.random() < 0.6 if ties is None else ties
    scores = [float(r.randrange(5)) if ties else r.uniform(-3, 3) for _ in range(n)]
    labels = [r.randrange(2) for _ in range(n)]
    weights = [r.choice([0, 1, 1, 2, 0.5]) for _ in range(n)] if r.random() < 0.4 else [1] * n
    groups = {"group": ["a", "b", *(r.choice("ab") for _ in range(n))][:n]}
    return scores, labels, weights, groups


def outcome(problem, *data):
    """What is chosen, or the error it is refused with."""
    try:
        return problem.choose(*data)
    except ValueError as refused:
        return refused


seeds = st.randoms(use_true_random=True)


def agrees(problem, scores, labels, weights, groups):
    """Whether ``choose`` accepts whom the reference accepts."""
    problem_groups = {column for where in problem.slices for column, _ in where}
    if any(v not in groups[c] for where in problem.slices for c, v in where):
        return  # nobody is in one of the slices: an error of its own
    expected = best(problem, problem.points[0], scores, labels, weights, groups)
    given_groups = groups if problem_groups else None
    found = outcome(problem, scores, labels, weights, given_groups)
    if isinstance(found, sp.Infeasible):
        assert not expected.feasible
        return
    if isinstance(found, ValueError):
        assert "0/0" in str(found)
        assert math.isnan(expected.objective)
        return
    assert expected.feasible
    (threshold,) = found.thresholds
    accepted = {i for i, s in enumerate(scores) if s > threshold and weights[i] > 0}
    assert accepted == expected.accepted
    if math.isnan(expected.objective):
        assert found.value == (0 if problem.maximize else 1)
    else:
        assert math.isclose(found.value, expected.objective, rel_tol=1e-9, abs_tol=1e-9)
    assert (
        threshold == -math.inf or weights[scores.index(threshold)] >= 0
        if threshold in scores
        else True
    )
    again = problem.evaluate(scores, labels, found.thresholds, weights, given_groups)
    assert math.isclose(again, found.value, rel_tol=1e-12, abs_tol=1e-12)


@examples(1000)
@given(problems(tame=True, size=2, kinds=ONE_THRESHOLD), seeds)
def test_any_problem_is_solved_as_by_trying_all_thresholds(problem, r):
    agrees(problem, *data(r))


@pytest.mark.parametrize("problem", USUAL, ids=str)
def test_the_usual_problems_are_solved_as_by_trying_all_thresholds(problem):
    for seed in range(40):
        r = Random(seed)
        agrees(problem, *data(r, n=r.randrange(2, 25)))


# ---- the conventions, one by one -----------------------------------------------------------------
def test_counts_compare_as_integers():
    scores, labels = np.arange(200.0), np.r_[np.ones(100), np.zeros(100)]
    for percent in range(1, 100):  # 0.29 * 100 is 28.999999999999996
        level = percent / 100
        found = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= level).choose(scores, labels)
        assert np.sum(scores[100:] > found.thresholds[0]) == percent
        found = sp.Problem(minimize=sp.coverage, subject_to=sp.recall >= level).choose(
            -scores, labels
        )
        assert np.sum(-scores[:100] > found.thresholds[0]) == percent


def test_the_scale_of_a_bound_does_not_matter():
    r = np.random.default_rng(0)
    scores, labels = r.normal(size=100), r.integers(0, 2, 100)
    expected = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.25).choose(scores, labels)
    for by in (1e-12, 1e-6, 1e6, 1e12, 1e300, 1e-300):
        found = sp.Problem(minimize=by * sp.fnr, subject_to=by * sp.fpr <= 0.25 * by).choose(
            scores, labels
        )
        assert found.thresholds == expected.thresholds
        negatives = float(np.sum(labels == 0))
        costs = sp.Rate(by * sp.FN, ONE), sp.Rate(by * sp.FP, ONE) <= 0.25 * negatives * by
        found = sp.Problem(minimize=costs[0], subject_to=costs[1]).choose(scores, labels)
        assert found.thresholds == expected.thresholds


def test_equal_scores_are_never_split():
    scores, labels = [3, 2, 2, 2, 1], [1, 1, 0, 1, 0]
    assert sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.49).choose(
        scores, labels
    ).thresholds == (2.0,)
    assert sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.5).choose(
        scores, labels
    ).thresholds == (1.0,)
    assert (
        sp.Problem(maximize=sp.precision, subject_to=sp.alerts.at(2)).choose(scores, labels).value
        == 1
    )


def test_a_cap_sits_on_the_lowest_admissible_score_and_a_floor_in_the_middle():
    scores, labels = [9.0, 7.0, 4.0, 3.0, 1.0], [1, 0, 1, 0, 0]
    for cap in (
        sp.fpr <= 0.34,
        sp.coverage <= 0.6,
        sp.fpr.at(0.3),
        sp.coverage.at(0.6),
        sp.tnr >= 0.6,
    ):
        assert sp.Problem(minimize=sp.fnr, subject_to=cap).choose(scores, labels).thresholds == (
            3.0,
        )
    for floor in (sp.recall >= 0.9, sp.fnr <= 0.1):
        assert sp.Problem(maximize=sp.precision, subject_to=floor).choose(
            scores, labels
        ).thresholds == (3.5,)
    assert sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(0.5)).choose(
        scores, labels
    ).thresholds == (8.0,)
    assert sp.Problem(maximize=sp.f_score(1)).choose(scores, labels).thresholds == (3.5,)


def test_accepting_all_is_minus_infinity_and_accepting_none_the_highest_score():
    scores, labels = [3.0, 2.0, 1.0], [1, 0, 1]
    assert sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 1).choose(
        scores, labels
    ).thresholds == (-math.inf,)
    assert sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 1).choose(
        scores, labels
    ).thresholds == (-math.inf,)
    assert sp.Problem(minimize=sp.fpr).choose(scores, labels).thresholds == (2.5,)
    assert sp.Problem(minimize=sp.coverage).choose(scores, labels).thresholds == (3.0,)


def test_a_setpoint_takes_the_nearest_rate_and_fewer_accepted_on_a_tie():
    scores, labels = [4.0, 3.0, 2.0, 1.0], [0, 0, 0, 0]
    for level, accepted in [
        (0.1, 0),
        (0.125, 0),
        (0.13, 1),
        (0.37, 1),
        (0.375, 1),
        (0.38, 2),
        (0.9, 4),
    ]:
        found = sp.Problem(minimize=sp.fpr, subject_to=sp.fpr.at(level)).choose(scores, labels)
        assert np.sum(np.array(scores) > found.thresholds[0]) == accepted
    scores, labels = [4.0, 3.0, 2.0, 1.0], [1, 1, 1, 1]
    found = sp.Problem(minimize=sp.fnr, subject_to=sp.fnr.at(0.375)).choose(scores, labels)
    assert np.sum(np.array(scores) > found.thresholds[0]) == 2  # 0.5 and 0.25 are as near


def test_zero_over_zero_is_the_worst_and_never_satisfies():
    scores, labels = [2.0, 1.0], [0, 1]
    only_none = sp.Problem(maximize=sp.precision, subject_to=sp.fpr <= 0).choose(scores, labels)
    assert only_none.thresholds == (2.0,)
    assert only_none.value == only_none.rates["precision"] == 0
    found = sp.Problem(minimize=sp.fpr, subject_to=sp.precision >= 0.4).choose(scores, labels)
    assert found.thresholds == (-math.inf,)
    found = sp.Problem(minimize=sp.fpr, subject_to=sp.precision <= 0.5).choose(scores, labels)
    assert found.thresholds[0] < 2  # accepting nobody has no precision, however small


def test_what_was_chosen_is_told_in_words():
    scores, labels = [4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0]
    found = sp.Problem(minimize=sp.fnr, subject_to=[sp.fpr <= 0.5, sp.precision >= 0.6]).choose(
        scores, labels
    )
    assert found.rates == {"fnr": 0.0, "fpr": 0.5, "precision": pytest.approx(2 / 3)}
    assert found.value == 0
    swept = sp.Problem(maximize=sp.tpr, subject_to=sp.fpr.over(0, 1), thresholds=2).choose(
        scores, labels
    )
    assert len(swept.thresholds) == 2
    assert swept.rates["fpr"] == pytest.approx(0.25)  # mean of 0 and 0.5


@pytest.mark.parametrize(
    "make", [np.float32, np.float16, torch.float32, torch.float16, torch.bfloat16]
)
def test_thresholds_decide_the_same_in_the_precision_of_the_scores(make):
    """Between two neighbours in float32 there is a middle in float64, and it rounds to either."""
    r = np.random.default_rng(0)
    for _ in range(50):
        start = float(r.normal())
        if isinstance(make, torch.dtype):
            first = torch.tensor(start, dtype=make)
            eps = torch.finfo(make).eps
            scores = torch.stack([first * (1 + k * eps) for k in range(12)])
        else:
            scores = [make(start)]
            for _ in range(11):
                scores.append(np.nextafter(scores[-1], make(9)))
            scores = np.array(scores)
        labels = r.integers(0, 2, 12)
        labels[:2] = 0, 1
        for problem in (
            sp.Problem(maximize=sp.f_score(1)),
            sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.5),
        ):
            found = problem.choose(scores, labels)
            decisions = np.asarray((scores > found.thresholds[0]).tolist())
            hits = np.sum(decisions & (labels == 1))
            value = {
                "f_score(1)": 2 * hits / (decisions.sum() + labels.sum()),
                "precision": hits / decisions.sum(),
            }[str(problem.objective)]
            assert found.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300, 5e-324])
def test_scores_of_any_size_are_cut_between_neighbours(size):
    scores = size * np.array([3.0, 2.0, 1.0, 0.0])
    found = sp.Problem(maximize=sp.f_score(1)).choose(scores, [1, 1, 0, 0])
    assert found.value == 1
    assert scores[1] > found.thresholds[0] >= scores[2]


def test_the_middle_of_large_scores_is_finite():
    found = sp.Problem(maximize=sp.f_score(1)).choose([1.7e308, 1.5e308, 1e308], [1, 1, 0])
    assert found.thresholds == (1.25e308,)


def test_the_reference_itself_knows_every_cut():
    assert cuts([1.0, 2.0, 2.0, 0.0], [1, 1, 1, 0]) == [frozenset(), {1, 2}, {0, 1, 2}]


@pytest.mark.parametrize("problem", [sp.roc_auc(), sp.roc_auc(fpr=(0, 0.3)), sp.pr_auc()], ids=str)
def test_the_value_of_a_choice_is_what_evaluate_gives(problem):
    """Of an area it is the area, not the mean of the objective at the few thresholds."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 8 == 0
    scores = rng.normal(size=40) + labels
    found = problem.choose(scores, labels)
    assert found.value == problem.evaluate(scores, labels)
    assert found.value != problem.evaluate(scores, labels, thresholds=found.thresholds)
