"""One threshold per group: the choice against all pairs of cuts, and the laws it obeys."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from setpoint import (
    Infeasible,
    Problem,
    coverage,
    error,
    f_score,
    fairness,
    fnr,
    fpr,
    precision,
    recall,
    tpr,
)
from setpoint.axes.windows import Window, best_together
from setpoint.rates import Bound, Counts, Setpoint

TWO, THREE = {"g": [0, 1]}, {"g": [0, 1, 2]}


def per_group(**goal: object) -> Problem:
    return Problem(**goal, thresholds="per group")  # type: ignore[arg-type]


EXACT = [
    per_group(minimize=error, subject_to=fairness.demographic_parity(0.05, **TWO)),
    per_group(minimize=error, subject_to=(coverage.on(g=0) - coverage.on(g=1)).at(0)),
    per_group(minimize=error, subject_to=fairness.equal_opportunity(0.05, **TWO)),
    per_group(minimize=error, subject_to=fairness.four_fifths(**TWO)),
    per_group(minimize=error, subject_to=fairness.bounded_group_loss(0.35, **TWO)),
    per_group(minimize=fnr, subject_to=[r <= 0.2 for r in fairness.each(fpr, **TWO)]),
    per_group(maximize=f_score(1), subject_to=fairness.predictive_parity(0.1, **TWO)),
    per_group(
        maximize=precision,
        subject_to=[fairness.gap(tpr, **TWO) <= 0.1, fairness.smallest(tpr, **TWO) >= 0.5],
    ),
    per_group(
        minimize=fairness.largest(fnr, **TWO), subject_to=fairness.demographic_parity(0.1, **TWO)
    ),
    per_group(
        maximize=fairness.smallest(tpr, **TWO), subject_to=fairness.largest(fpr, **TWO) <= 0.3
    ),
    per_group(minimize=error, subject_to=fairness.demographic_parity(0.05, **THREE)),
    per_group(
        minimize=fairness.largest(error, **THREE), subject_to=fairness.four_fifths(0.7, **THREE)
    ),
    per_group(
        minimize=fpr, subject_to=fairness.four_fifths(**TWO)
    ),  # nobody accepted is 0/0, not 4/5
]
SEARCHED = [
    per_group(minimize=error, subject_to=fairness.equalized_odds(0.1, **TWO)),
    per_group(minimize=error, subject_to=fairness.equalized_odds(0.2, **THREE)),
    per_group(minimize=fnr, subject_to=[fpr <= 0.2, fairness.equal_opportunity(0.05, **TWO)]),
    per_group(
        maximize=recall, subject_to=[precision >= 0.5, fairness.demographic_parity(0.1, **TWO)]
    ),
]


def draw(
    n: int, groups: int, seed: int, *, ties: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    g = random.integers(0, groups, n)
    y = (random.random(n) < 0.35 + 0.1 * g).astype(int)
    s = random.normal(size=n) + y + 0.5 * g
    return (np.round(s, 0) if ties else s), y, g


def judged(problem: Problem, accepted: np.ndarray, y: np.ndarray, g: np.ndarray) -> tuple:
    """How far the targets are missed and the objective's cost, from decisions alone."""
    tables = {}
    for where in problem.slices:
        inside = g == where[0][1] if where else np.ones(len(g), bool)
        a, p = accepted[inside], y[inside] == 1
        cells = [np.float64(x.sum()) for x in (a & p, a & ~p, ~a & p, ~a & ~p, p, ~p)]
        tables[where] = Counts(*cells)
    with np.errstate(all="ignore"):
        missed = 0.0
        for target in problem.subject_to:
            assert isinstance(target, (Bound, Setpoint))
            by = target.gap(tables)
            missed += np.inf if np.isnan(by) else by if by > 1e-9 else 0.0
        value = problem.objective.of(tables)
    cost = np.inf if np.isnan(value) else -value if problem.maximize else value
    return round(float(missed), 9), round(float(cost), 9)


def by_brute_force(problem: Problem, s: np.ndarray, y: np.ndarray, g: np.ndarray) -> tuple:
    """The best of all combinations of cuts."""
    groups = sorted(set(g.tolist()))
    levels = [[-np.inf, *np.unique(s[g == k])] for k in groups]
    decisions = (s > np.array(t)[g] for t in itertools.product(*levels))
    return min(judged(problem, accepted, y, g) for accepted in decisions)


def reached(problem: Problem, s: np.ndarray, y: np.ndarray, g: np.ndarray) -> tuple:
    found = problem.choose(s, y, groups=g)
    return judged(problem, s > np.array([found.thresholds[k] for k in g.tolist()]), y, g)


def groups_in(problem: Problem) -> int:
    return sum(1 for where in problem.slices if where)


@pytest.mark.parametrize("problem", [*EXACT, *SEARCHED], ids=str)
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
def test_no_combination_of_cuts_is_better(problem: Problem, ties: bool) -> None:
    count = groups_in(problem)
    for seed in range(3):
        s, y, g = draw(36 if count == 2 else 27, count, seed, ties=ties)
        best = by_brute_force(problem, s, y, g)
        if best[0] > 0 and any(isinstance(t, Bound) for t in problem.subject_to):
            with pytest.raises(Infeasible):
                problem.choose(s, y, groups=g)
        else:
            assert reached(problem, s, y, g) == best


def test_of_equally_good_levels_the_one_that_accepts_most_is_taken() -> None:
    problem = per_group(minimize=error, subject_to=fairness.demographic_parity(0.0, **TWO))
    s, y, g = np.tile([0.0, 1.0], 2), np.tile([1, 0], 2), np.repeat([0, 1], 2)
    found = problem.choose(s, y, groups=g)  # all or nobody: half of them are wrong
    assert (found.value, found.thresholds) == (0.5, {0: -np.inf, 1: -np.inf})


@pytest.mark.parametrize("problem", [*EXACT[:8], *SEARCHED[2:]], ids=str)
def test_order_and_names_of_groups_change_nothing(problem: Problem) -> None:
    s, y, g = draw(300, 2, seed=5)
    swapped = Problem.parse(str(problem).replace("g=0", "g=2").replace("g=1", "g=0"))
    swapped = Problem.parse(str(swapped).replace("g=2", "g=1"))
    one, other = problem.choose(s, y, groups=g), swapped.choose(s, y, groups=1 - g)
    assert one.value == pytest.approx(other.value, abs=1e-12)
    assert one.thresholds == {0: other.thresholds[1], 1: other.thresholds[0]}


PLAIN = [
    Problem(minimize=fnr, subject_to=fpr <= 0.1),
    Problem(maximize=precision, subject_to=recall >= 0.7),
    Problem(maximize=recall, subject_to=precision >= 0.7),
    Problem(minimize=error, subject_to=coverage.at(0.3)),
    Problem(maximize=f_score(2)),
]


@pytest.mark.parametrize("problem", PLAIN, ids=str)
def test_one_group_is_the_plain_problem(problem: Problem) -> None:
    s, y, _ = draw(200, 1, seed=3)
    one = Problem.parse(f"{problem} with thresholds per group")
    found, plain = one.choose(s, y, groups=["all"] * 200), problem.choose(s, y)
    assert found.thresholds == {"all": plain.thresholds[0]}
    assert found.value == plain.value
    assert found.rates == plain.rates


@pytest.mark.parametrize("problem", [EXACT[0], EXACT[2], EXACT[3], EXACT[4]], ids=str)
def test_copies_of_groups_leave_everything_unchanged(problem: Problem) -> None:
    s, y, g = draw(200, 2, seed=4)
    text = str(problem)
    name = next(n for n in ("coverage", "tpr", "error") if f"{n} on" in text)
    rate = {"coverage": coverage, "tpr": tpr, "error": error}[name]
    four = {"g": [0, 1, 2, 3]}
    wide = {
        "abs(coverage": fairness.demographic_parity(0.05, **four),
        "abs(tpr": fairness.equal_opportunity(0.05, **four),
        "min(coverage": fairness.four_fifths(**four),
        "max(error": fairness.bounded_group_loss(0.35, **four),
    }[text.split("subject to ")[1].split(" on")[0]]
    assert rate is not None
    twice = per_group(minimize=error, subject_to=wide)
    again = twice.choose(np.tile(s, 2), np.tile(y, 2), groups=np.concatenate([g, g + 2]))
    once = problem.choose(s, y, groups=g)
    assert again.value == pytest.approx(once.value, abs=1e-12)
    assert again.thresholds == {k: once.thresholds[k % 2] for k in range(4)}


def test_intersections_of_two_columns_have_a_threshold_each() -> None:
    random = np.random.default_rng(0)
    s, y = random.normal(size=400), random.integers(0, 2, 400)
    groups = {"sex": random.choice(["f", "m"], 400), "race": random.choice(["b", "w"], 400)}
    names: dict[str, Sequence[str]] = {"sex": ["f", "m"], "race": ["b", "w"]}
    found = per_group(minimize=error, subject_to=fairness.demographic_parity(0.02, **names)).choose(
        s + y, y, groups=groups
    )
    assert set(found.thresholds) == set(itertools.product(["b", "w"], ["f", "m"]))  # by column
    shares = {
        (race, sex): np.mean((s + y)[(groups["race"] == race) & (groups["sex"] == sex)] > t)
        for (race, sex), t in found.thresholds.items()
    }
    assert max(shares.values()) - min(shares.values()) <= 0.02 + 1e-9


def test_gaps_of_two_columns_are_held_by_their_intersections() -> None:
    random = np.random.default_rng(1)
    sex, race = random.choice(["f", "m"], 600), random.choice(["b", "w"], 600)
    y = (random.random(600) < 0.3 + 0.2 * (sex == "m")).astype(int)
    s = random.normal(size=600) + y + 0.7 * (sex == "m") + 0.5 * (race == "w")
    bounds = [
        fairness.demographic_parity(0.05, sex=["f", "m"]),
        fairness.demographic_parity(0.05, race=["b", "w"]),
    ]
    problem = per_group(minimize=error, subject_to=bounds)
    found = problem.choose(s, y, groups={"sex": sex, "race": race})
    free = per_group(minimize=error, subject_to=fairness.demographic_parity(1, sex=["f", "m"]))
    assert len(found.thresholds) == 4
    assert all(found.rates[str(bound.expression)] <= 0.05 + 1e-9 for bound in bounds)
    assert free.choose(s, y, groups=sex).value - 0.02 < found.value < 0.45
    again = problem.evaluate(s, y, found.thresholds, groups={"sex": sex, "race": race})
    assert again == pytest.approx(found.value, abs=1e-12)


def test_evaluate_agrees_with_choose() -> None:
    s, y, g = draw(300, 2, seed=8)
    for problem in EXACT[:10]:
        found = problem.choose(s, y, groups=g)
        assert problem.evaluate(s, y, groups=g) == found.value
        again = problem.evaluate(s, y, found.thresholds, groups=g)
        assert again == pytest.approx(found.value, abs=1e-12)


def test_large_data_take_little_time_and_hold() -> None:
    s, y, g = draw(100_000, 2, seed=0)
    found = EXACT[0].choose(s, y, groups=g)
    shares = [np.mean(s[g == k] > found.thresholds[k]) for k in (0, 1)]
    assert abs(shares[0] - shares[1]) <= 0.05 + 1e-9


def test_a_group_that_is_not_named_is_an_error() -> None:
    s, y, g = draw(60, 3, seed=0)
    with pytest.raises(ValueError, match=r"Row \d+ has g = 2, a group that the problem names no"):
        EXACT[0].choose(s, y, groups=g)


def test_a_group_without_a_threshold_is_an_error() -> None:
    s, y, g = draw(60, 3, seed=0)
    with pytest.raises(ValueError, match="No threshold for group 2; add it"):
        EXACT[0].evaluate(s, y, {0: 0.0, 1: 0.0}, groups=g)
    with pytest.raises(TypeError, match="one threshold per group"):
        EXACT[0].evaluate(s, y, 0.5, groups=g)


def test_a_group_without_examples_is_an_error() -> None:
    s, y, g = draw(60, 1, seed=0)
    with pytest.raises(ValueError, match="No example has g = 1"):
        EXACT[0].choose(s, y, groups=g)


def test_where_a_ratio_needs_a_rate_groups_do_not_settle_at_zero():
    """Costs are lowest where both rates are zero, which as a ratio is 0/0."""
    bound = fpr.on(g="a") <= 0.1
    rates, costs = [np.array([0.0, 0.2, 0.4])] * 2, [np.array([0.0, 1.0, 2.0])] * 2
    window = Window(bound, (), width=0.0, factor=1.25, may_be_zero=False)
    assert best_together(costs, rates, window, np.sum, 0.0) == [1, 1]
    window = Window(bound, (), width=0.0, factor=1.25)
    assert best_together(costs, rates, window, np.sum, 0.0) == [0, 0]
