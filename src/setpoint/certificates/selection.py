"""Which threshold to take: among those that are proved, or selected on some rows, tested on others.

With an objective, the threshold that it likes best. With bounds alone, under a cap or for precision
the lowest, which finds most; under floors only the highest, which alarms least.

**Sample splitting.** Bounds on F scores, error and gaps are not monotone in the threshold, and no
rank fixed in advance is as good as knowing where to look. So candidate thresholds are selected on a
pseudo-random quarter of the rows (the *selection rows*, the same ones every time, whatever the
order of the rows), where the bound has most to spare; for the other rows (the *test rows*) such a
threshold is fixed: one test, exact for F1, error and everything else that is about one share,
through the region of the shares (:mod:`setpoint.certificates.regions`) for the rest. Several bounds
must all pass at that one threshold; a false one passes with probability ``delta`` at most, so they
do not share it.

A gap has most to spare where hardly anybody is accepted, which no objective wants. So tests go on
at thresholds that the objective likes better and better on the selection rows, with less and less
to spare (the Pareto front of the two), each at the full ``delta``, until one fails: a fixed
sequence (Pareto testing, Laufer-Goldshtein et al. 2022). All that passed are proved together, and
the best of them is taken.

Bonferroni's correction over 14 ranks on all rows, which needs no split, proves F1 only 3.5 standard
errors below the measured one, this 1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.certificates.copies import mixed
from setpoint.certificates.decisions import halfway
from setpoint.certificates.goals import CertificateGoal, Inequality, count_bounds
from setpoint.certificates.proofs import (
    ThresholdRange,
    ThresholdRule,
    Thresholds,
    proved_at,
    values_at,
)
from setpoint.certificates.regions import signs, weights
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    CalibrationSample,
    Subset,
)
from setpoint.rates import Expression, Quotient, Rate

Merit = Callable[[CalibrationSample, Floats], Floats]
"""How good thresholds are on some rows, the greater the better."""
SELECTION_SHARE = 0.25
"""The share of the rows that select."""
_CANDIDATES = 32
_SELECTION_TAIL = 0.16
"""Selection compares thresholds by bounds one standard error away."""
_MOST_THRESHOLDS = 100_000
"""Thresholds tried for an objective that must be measured at each; more are thinned out evenly."""


def choose_threshold(
    goal: CertificateGoal,
    sample: CalibrationSample,
    low: ThresholdRule | None,
    high: ThresholdRule | None,
    ranges: Sequence[ThresholdRange],
) -> ThresholdRule:
    """The threshold that the goal prefers within ranges that end at ``low`` and ``high``."""
    lowest = prefers_low(goal, low, high)
    if lowest is None:
        assert goal.objective is not None
        tried = _all_thresholds(sample, ranges)
        values = values_at(goal.objective, sample, tried)
        at = float(tried[best(values, goal.maximize)])
    else:
        at = min(r.low for r in ranges) if lowest else max(r.high for r in ranges)
        end = low if lowest else high
        if end is not None and at == end.value(sample):
            return end
    if at == np.inf:  # nobody is accepted, here and (as far as one can tell) elsewhere
        at = float(sample.sorted(Subset((), EVERYONE))[-1])
    return ThresholdRule(at, chosen=True)


def prefers_low(
    goal: CertificateGoal, low: ThresholdRule | None, high: ThresholdRule | None
) -> bool | None:
    """Whether the lowest threshold is the best, or the highest; None: it must be measured."""
    if goal.objective is None:
        return low is not None or any(is_of_accepted(b.expression) for b in goal.bounds)
    direction = goal.objective.direction
    if direction:
        return (direction > 0) == goal.maximize
    if high is not None and goal.maximize and is_of_accepted(goal.objective):
        return False  # precision under a floor: the fewest alerts that keep it
    return None


def threshold_merit(goal: CertificateGoal) -> Merit | None:
    """How good thresholds are for a goal, the greater the better; None: none is better."""
    if goal.objective is None and not any(is_of_accepted(b.expression) for b in goal.bounds):
        return None
    lowest = prefers_low(goal, None, None)
    if lowest is not None:
        return lambda _, thresholds: -thresholds if lowest else thresholds
    sign = 1.0 if goal.maximize else -1.0
    assert goal.objective is not None
    objective = goal.objective
    return lambda sample, thresholds: np.nan_to_num(
        sign * values_at(objective, sample, thresholds), nan=-np.inf
    )


def is_of_accepted(expression: Expression) -> bool:
    """Whether it counts accepted examples alone: precision, lift."""
    if isinstance(expression, Quotient):
        return is_of_accepted(expression.top)
    if not isinstance(expression, Rate):
        return False
    return not any(weight for side in weights(expression) for weight in side[2:])


def best(values: Floats, maximize: bool) -> int:
    """The first of the best; NaN is the worst."""
    worst = -np.inf if maximize else np.inf
    values = np.where(np.isnan(values), worst, values)
    return int(np.argmax(values) if maximize else np.argmin(values))


def _all_thresholds(sample: CalibrationSample, ranges: Sequence[ThresholdRange]) -> Floats:
    """All scores in the ranges, and their ends."""
    scores = sample.sorted(Subset((), EVERYONE))
    found: list[Floats] = []
    for each in ranges:
        first, last = np.searchsorted(scores, [each.low, each.high])
        step = max(1, (last - first) // _MOST_THRESHOLDS)
        ends = [end for end in (each.low, each.high) if end < np.inf]
        found += [np.asarray(ends, float), scores[first:last:step].astype(float)]
    return np.unique(np.concatenate(found))


@dataclass(frozen=True)
class TestedThreshold:
    """A threshold, what is proved there of each bound's expression, and what is displayed of it.

    What is displayed holds for all bounds at once, and for every threshold that may be taken.
    """

    threshold: float
    proved: tuple[float, ...]
    displayed: tuple[float, ...]

    def holds(self, family: Sequence[Inequality]) -> bool:
        """Whether all inequalities are proved."""
        return all(each.holds(value) for each, value in zip(family, self.proved, strict=True))


def select_and_test(
    family: Sequence[Inequality],
    sample: CalibrationSample,
    delta: float,
    merit: Merit | None,
    others: Sequence[Inequality],
    admissible: Callable[[float], bool],
) -> tuple[TestedThreshold | None, list[TestedThreshold]]:
    """The best threshold at which all inequalities are proved, and all tests that were made.

    Args:
        family: The inequalities to prove.
        sample: All rows.
        delta: The probability of a wrong proof.
        merit: How good a threshold is; None: one is as good as another.
        others: The goal's other inequalities. A candidate must keep them on the selection rows.
        admissible: Whether a threshold is proved to keep the others. That proof looks at all rows,
            so it must not influence which thresholds are tested, only which of them is taken.
    """
    selection, test = split_rows(sample)
    thresholds = candidate_thresholds(selection, family)
    for other in others:  # keep those where the other bounds hold on these rows
        values = values_at(other.bound.expression, selection, thresholds)
        kept = np.array([other.holds(value) for value in values.tolist()], bool)
        thresholds = thresholds[kept]
    if not len(thresholds):
        return None, []
    spare = np.array([_spare(family, selection, t) for t in thresholds.tolist()])
    order = np.argsort(-spare, kind="stable")
    if merit is not None:
        order = pareto_order(spare, merit(selection, thresholds))
    tried: list[TestedThreshold] = []
    several = len(order) if merit is not None or others else 1
    for i in order:
        tried.append(_test(family, test, float(thresholds[i]), delta, several))
        fails = not tried[-1].holds(family)
        if fails or (merit is None and admissible(tried[-1].threshold)):
            break
    passed = [trial for trial in tried if trial.holds(family) and admissible(trial.threshold)]
    if merit is None or not passed:
        return (passed[0] if passed else None), tried
    found = merit(sample, np.array([trial.threshold for trial in passed]))
    return passed[int(np.flatnonzero(found == found.max())[-1])], tried


def candidate_thresholds(selection: CalibrationSample, family: Sequence[Inequality]) -> Floats:
    """Thresholds to consider, from low to high: between scores, denser towards both ends."""
    used = {s for i in family for s in signs(i.bound.expression, selection.prevalence)}
    subsets = {s for s in used if not s.is_prior} or {Subset((), EVERYONE)}
    shares = 1 / (1 + np.exp(np.linspace(-5, 5, _CANDIDATES)))
    found = []
    for subset in subsets:
        scores = selection.sorted(subset)
        if len(scores):
            found.append(scores[(shares * (len(scores) - 1)).round().astype(int)])
    if not found:
        return np.empty(0)
    everyone = selection.sorted(Subset((), EVERYONE))
    at = np.unique(np.concatenate(found)).tolist()
    return np.array([halfway(score, everyone, selection.precision) for score in at])


def pareto_order(spare: Floats, merit: Floats) -> NDArray[np.intp]:
    """From the most to spare to the most merit: each has more merit than all before."""
    order = np.lexsort((-merit, -spare))
    best = np.maximum.accumulate(merit[order])
    kept: NDArray[np.intp] = order[np.append(True, merit[order][1:] > best[:-1])]
    return kept


def _test(
    family: Sequence[Inequality],
    test: CalibrationSample,
    threshold: float,
    delta: float,
    several: int,
) -> TestedThreshold:
    """Test one of ``several`` thresholds. What failed at the first of them is displayed alone."""
    at = Thresholds({(): ThresholdRule(threshold)})
    proved = tuple(proved_at(each, test, at, delta) for each in family)
    found = TestedThreshold(threshold, proved, proved)
    tail = delta / count_bounds(family) / (several if found.holds(family) else 1)
    return replace(found, displayed=tuple(proved_at(each, test, at, tail) for each in family))


def _spare(family: Sequence[Inequality], selection: CalibrationSample, threshold: float) -> float:
    """By how much the bound with the least to spare holds on the selection rows."""
    at = Thresholds({(): ThresholdRule(threshold)})
    gaps = []
    for each in family:
        value = proved_at(each, selection, at, _SELECTION_TAIL, quick=True)
        bound = each.bound
        gap = bound.level - value if bound.sense == "<=" else value - bound.level
        gaps.append(gap / (bound.expression.scale or 1.0))
    return min(gaps) if not np.isnan(gaps).any() else -np.inf


def split_rows(sample: CalibrationSample) -> tuple[CalibrationSample, CalibrationSample]:
    """Selection rows and test rows: pseudo-random, the same in whatever order the rows come."""
    rows = in_order(sample)
    chosen = random_numbers(rows) < SELECTION_SHARE
    return rows.rows(chosen), rows.rows(~chosen)


def traits_of(sample: CalibrationSample) -> list[NDArray[np.bool_]]:
    """What is known of each row beside its score."""
    return [*([] if sample.labels is None else [sample.labels]), *sample.slices.values()]


def in_order(sample: CalibrationSample) -> CalibrationSample:
    """The rows sorted by all that is known of them."""
    plain = sample.amounts is None and not sample.slices
    if sample.labels is not None and plain:  # both classes are sorted already
        halves = [sample.sorted(Subset((), kind)) for kind in (NEGATIVES, POSITIVES)]
        labels = np.repeat([False, True], [len(half) for half in halves])
        return CalibrationSample(
            np.concatenate(halves), labels, {}, sample.precision, sample.prevalence
        )
    amounts = [] if sample.amounts is None else [sample.amounts]
    return sample.rows(np.lexsort([*amounts, sample.scores, *traits_of(sample)]))


def random_numbers(sample: CalibrationSample) -> Floats:
    """A number between 0 and 1 per row, a function of the scores, labels and slices alone.

    Rows are sorted; those alike in all of these are told apart by counting them. The numbers are a
    hash of the bits (splitmix64). All rows together seed it: if a row's number depended on that row
    alone, samples of the same few scores would be split alike, and the shares that such a split
    gets wrong would be wrong every time.
    """
    bits = (sample.scores.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    traits = [mask.astype(np.uint64) for mask in traits_of(sample)]
    alike = np.zeros(len(bits), bool)
    alike[1:] = bits[1:] == bits[:-1]
    for trait in traits:
        alike[1:] &= trait[1:] == trait[:-1]
    at = np.arange(len(alike))
    number_in_run = (at - np.maximum.accumulate(np.where(alike, 0, at))).astype(np.uint64)
    key = mixed(bits)
    for trait in (number_in_run, *traits):
        key = mixed(key ^ mixed(trait + np.uint64(1)))
    seed = mixed(np.add.reduce(key, keepdims=True))
    return mixed(key ^ seed) / 2.0**64
