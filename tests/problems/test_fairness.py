"""Fairness by name: what the names stand for, in words and in numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import setpoint as sp
from setpoint import Problem, error, fnr, tpr

SEX = {"sex": ["f", "m"]}
RACE = {"race": ["a", "b", "c"]}
BOTH = {"sex": ["f", "m"], "race": ["a", "b"]}


@pytest.mark.parametrize("names", [SEX, RACE, BOTH], ids=["two", "three", "intersections"])
@pytest.mark.parametrize("thresholds", ["shared", "per group"])
def test_every_name_reads_back(names: dict, thresholds: str) -> None:
    goals = [
        sp.demographic_parity(0.02, **names),
        sp.equal_opportunity(0.02, **names),
        sp.equalized_odds(0.02, **names),
        sp.predictive_parity(0.02, **names),
        sp.bounded_group_loss(0.2, **names),
        sp.bounded_group_loss(0.2, fnr, **names),
        sp.four_fifths(**names),
    ]
    for goal in goals:
        problem = Problem(minimize=error, subject_to=goal, thresholds=thresholds)
        assert Problem.parse(str(problem)) == problem
    worst = Problem(minimize=sp.largest(fnr, **names), thresholds=thresholds)
    assert Problem.parse(str(worst)) == worst


def test_the_rates_compared_are_those_of_the_textbook() -> None:
    random = np.random.default_rng(0)
    y, d = random.integers(0, 2, 300), random.integers(0, 2, 300)
    g = random.choice(RACE["race"], 300)
    accepted = [d[g == k].mean() for k in "abc"]
    found = [d[(g == k) & (y == 1)].mean() for k in "abc"]
    shares = [  # pairs, not a dict: two names for the same bound must not hide each other
        (sp.demographic_parity(0.1, **RACE), accepted),
        (sp.equal_opportunity(0.1, **RACE), found),
        (sp.equalized_odds(0.1, **RACE)[0], found),
        (sp.equalized_odds(0.1, **RACE)[1], [d[(g == k) & (y == 0)].mean() for k in "abc"]),
        (sp.predictive_parity(0.1, **RACE), [y[(g == k) & (d == 1)].mean() for k in "abc"]),
    ]
    for bound, rates in shares:
        value = Problem(minimize=bound.expression).evaluate(d, y, 0.5, groups=g)
        assert value == pytest.approx(max(rates) - min(rates), abs=1e-12)
    rule = Problem(maximize=sp.four_fifths(**RACE).expression).evaluate(d, y, 0.5, groups=g)
    assert rule == pytest.approx(min(accepted) / max(accepted), abs=1e-12)
    wrong = [np.mean(d[g == k] != y[g == k]) for k in "abc"]
    bound = sp.bounded_group_loss(0.2, **RACE)
    for worst in (sp.largest(error, **RACE), bound.expression):
        value = Problem(minimize=worst).evaluate(d, y, 0.5, groups=g)
        assert value == pytest.approx(max(wrong), abs=1e-12)
    assert (bound.sense, bound.level) == ("<=", 0.2)
    assert (sp.four_fifths(**RACE).sense, sp.four_fifths(**RACE).level) == (">=", 0.8)


def test_exact_equalized_odds_need_more_than_one_threshold_per_group() -> None:
    goal = sp.equalized_odds(0.0, **RACE)
    with pytest.raises(ValueError, match=r"fix 4 differences between 3 groups, more than 3 thr.*"):
        Problem(minimize=error, subject_to=goal, thresholds="per group")
    with pytest.raises(ValueError, match=r"Leave a tolerance .* or share one threshold"):
        Problem(minimize=error, subject_to=goal, thresholds="per group")
    assert Problem(minimize=error, subject_to=goal).kind == "plain"
    assert Problem(
        minimize=error, subject_to=sp.equalized_odds(0.02, **RACE), thresholds="per group"
    )


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: sp.gap(tpr), "Name the groups by their column"),
        (lambda: sp.gap(tpr, sex="fm"), "List the groups of sex, as in sex=['fm', ...]"),
        (lambda: sp.gap(tpr, sex=["f"]), "Only one group is named"),
        (lambda: sp.gap(tpr, sex=[]), "sex names no group"),
        (lambda: sp.gap(tpr, sex=["f", "f"]), "names a group twice"),
        (lambda: sp.gap(0.5, sex=["f", "m"]), "compared by a rate, such as tpr; got 0.5"),
        (
            lambda: sp.demographic_parity(2, **SEX),
            "Rates differ by at most 1; got a tolerance of 2",
        ),
        (lambda: sp.demographic_parity(-0.1, **SEX), "The tolerance must be at least 0"),
        (lambda: sp.four_fifths(80, **SEX), "For 80 % write 0.8"),
        (lambda: sp.each(tpr, id=range(2000)), "2,000 groups are more than 1,000"),
    ],
)
def test_slips_are_named(make, why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(why)):
        make()
