"""Fairness by name: what the names stand for, in words and in numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from setpoint import Problem, error, fairness, fnr, tpr

SEX = {"sex": ["f", "m"]}
RACE = {"race": ["a", "b", "c"]}
BOTH = {"sex": ["f", "m"], "race": ["a", "b"]}


@pytest.mark.parametrize("names", [SEX, RACE, BOTH], ids=["two", "three", "intersections"])
@pytest.mark.parametrize("thresholds", ["shared", "per group"])
def test_every_name_reads_back(names: dict, thresholds: str) -> None:
    goals = [
        fairness.demographic_parity(0.02, **names),
        fairness.equal_opportunity(0.02, **names),
        fairness.equalized_odds(0.02, **names),
        fairness.predictive_parity(0.02, **names),
        fairness.bounded_group_loss(0.2, **names),
        fairness.bounded_group_loss(0.2, fnr, **names),
        fairness.four_fifths(**names),
    ]
    for goal in goals:
        problem = Problem(minimize=error, subject_to=goal, thresholds=thresholds)
        assert Problem.parse(str(problem)) == problem
    worst = Problem(minimize=fairness.largest(fnr, **names), thresholds=thresholds)
    assert Problem.parse(str(worst)) == worst


def test_the_rates_compared_are_those_of_the_textbook() -> None:
    random = np.random.default_rng(0)
    y, d = random.integers(0, 2, 300), random.integers(0, 2, 300)
    g = random.choice(RACE["race"], 300)
    accepted = [d[g == k].mean() for k in "abc"]
    found = [d[(g == k) & (y == 1)].mean() for k in "abc"]
    shares = [  # pairs, not a dict: two names for the same bound must not hide each other
        (fairness.demographic_parity(0.1, **RACE), accepted),
        (fairness.equal_opportunity(0.1, **RACE), found),
        (fairness.equalized_odds(0.1, **RACE)[0], found),
        (fairness.equalized_odds(0.1, **RACE)[1], [d[(g == k) & (y == 0)].mean() for k in "abc"]),
        (fairness.predictive_parity(0.1, **RACE), [y[(g == k) & (d == 1)].mean() for k in "abc"]),
    ]
    for bound, rates in shares:
        value = Problem(minimize=bound.expression).evaluate(d, y, 0.5, groups=g)
        assert value == pytest.approx(max(rates) - min(rates), abs=1e-12)
    rule = Problem(maximize=fairness.four_fifths(**RACE).expression).evaluate(d, y, 0.5, groups=g)
    assert rule == pytest.approx(min(accepted) / max(accepted), abs=1e-12)
    wrong = [np.mean(d[g == k] != y[g == k]) for k in "abc"]
    bound = fairness.bounded_group_loss(0.2, **RACE)
    for worst in (fairness.largest(error, **RACE), bound.expression):
        value = Problem(minimize=worst).evaluate(d, y, 0.5, groups=g)
        assert value == pytest.approx(max(wrong), abs=1e-12)
    assert (bound.sense, bound.level) == ("<=", 0.2)
    assert (fairness.four_fifths(**RACE).sense, fairness.four_fifths(**RACE).level) == (">=", 0.8)


def test_exact_equalized_odds_need_more_than_one_threshold_per_group() -> None:
    goal = fairness.equalized_odds(0.0, **RACE)
    with pytest.raises(ValueError, match=r"fix 4 differences between 3 groups, more than 3 thr.*"):
        Problem(minimize=error, subject_to=goal, thresholds="per group")
    with pytest.raises(ValueError, match=r"Leave a tolerance .* or share one threshold"):
        Problem(minimize=error, subject_to=goal, thresholds="per group")
    assert Problem(minimize=error, subject_to=goal).kind == "everyone"
    assert Problem(
        minimize=error, subject_to=fairness.equalized_odds(0.02, **RACE), thresholds="per group"
    )


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: fairness.gap(tpr), "Name the groups by their column"),
        (lambda: fairness.gap(tpr, sex="fm"), "List the groups of sex, as in sex=['fm', ...]"),
        (lambda: fairness.gap(tpr, sex=["f"]), "Only one group is named"),
        (lambda: fairness.gap(tpr, sex=[]), "sex names no group"),
        (lambda: fairness.gap(tpr, sex=["f", "f"]), "names a group twice"),
        (lambda: fairness.gap(0.5, sex=["f", "m"]), "compared by a rate, such as tpr; got 0.5"),
        (
            lambda: fairness.demographic_parity(2, **SEX),
            "Rates differ by at most 1; got a tolerance of 2",
        ),
        (lambda: fairness.demographic_parity(-0.1, **SEX), "The tolerance must be at least 0"),
        (lambda: fairness.four_fifths(80, **SEX), "For 80 % write 0.8"),
        (lambda: fairness.each(tpr, id=range(2000)), "2,000 groups are more than 1,000"),
    ],
)
def test_slips_are_named(make, why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(why)):
        make()
