"""Which of several admissible thresholds to take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from setpoint.certificates.evidence import Place
from setpoint.certificates.goals import Goal
from setpoint.certificates.precision_walk import Stretch
from setpoint.certificates.sample import EVERYONE, Part, Sample, cells
from setpoint.certificates.tails import Floats
from setpoint.rates import Array, Expression, Quotient, Rate

MOST = 100_000
"""Thresholds tried for an objective that must be measured at each; more are thinned out evenly."""


def choose(
    goal: Goal,
    sample: Sample,
    prevalence: float | None,
    low: Place | None,
    high: Place | None,
    open_: Sequence[Stretch],
) -> Place:
    """The threshold that the objective likes best in the open stretches."""
    lowest = prefers_low(goal, low, high)
    if lowest is None:
        tried = _thresholds(sample, open_)
        measured = measure(goal.objective, sample, tried, prevalence)
        at = float(tried[best(measured, goal.maximize)])
    else:
        at = min(s.low for s in open_) if lowest else max(s.high for s in open_)
    end = low if lowest else high
    if lowest is not None and end is not None and at == end.threshold(sample):
        return end
    if at == np.inf:  # nobody is accepted, here and (as far as one can tell) elsewhere
        at = float(sample.sorted(Part((), EVERYONE))[-1])
    return Place(at, chosen=True)


def prefers_low(goal: Goal, low: Place | None, high: Place | None) -> bool | None:
    """Whether the lowest threshold is the best, or the highest; None: it must be measured.

    Without an objective floors take the highest threshold (the fewest alerts that keep the promise)
    and everything else the lowest (the most that is found).
    """
    if goal.objective is None:
        return any(is_of_accepted(bound.expression) for bound in goal.bounds) or (low is not None)
    direction = goal.objective.direction
    if direction:
        return (direction > 0) == goal.maximize
    if high is not None and goal.maximize and is_of_accepted(goal.objective):
        return False  # precision under a floor: the fewest alerts that keep it
    return None


def merit_of(goal: Goal, prevalence: float | None) -> Callable[[Sample, Floats], Floats] | None:
    """How good thresholds are for a goal, the greater the better; None: none is better."""
    asks_for_more = any(is_of_accepted(bound.expression) for bound in goal.bounds)
    if goal.objective is None and not asks_for_more:
        return None
    lowest = prefers_low(goal, None, None)
    if lowest is not None:
        return lambda _, thresholds: -thresholds if lowest else thresholds
    sign = 1.0 if goal.maximize else -1.0

    def measured(sample: Sample, thresholds: Floats) -> Floats:
        return np.nan_to_num(
            sign * measure(goal.objective, sample, thresholds, prevalence), nan=-np.inf
        )

    return measured


def is_of_accepted(expression: Expression) -> bool:
    """Whether only accepted examples count above, and nobody missed below: precision, lift."""
    if isinstance(expression, Quotient):
        return is_of_accepted(expression.top)
    if not isinstance(expression, Rate):
        return False
    return not any(weight for side in cells(expression) for weight in side[2:])


def measure(
    expression: Expression | None, sample: Sample, thresholds: Array, prevalence: float | None
) -> Floats:
    """The value of an expression on the sample at each of ``thresholds``; 0/0 is NaN."""
    assert expression is not None
    tables = {
        where: sample.table(where, np.asarray(thresholds), prevalence)
        for where in {rate.where for rate in expression.rates()}
    }
    with np.errstate(all="ignore"):
        value = expression.of(tables)
    return np.broadcast_to(np.asarray(value, float), np.shape(thresholds))


def best(values: Floats, maximize: bool) -> int:
    """The first of the best; NaN is the worst."""
    worst = -np.inf if maximize else np.inf
    values = np.where(np.isnan(values), worst, values)
    return int(np.argmax(values) if maximize else np.argmin(values))


def _thresholds(sample: Sample, open_: Sequence[Stretch]) -> Floats:
    """All scores in the stretches, and their ends."""
    scores = sample.sorted(Part((), EVERYONE))
    found: list[Floats] = []
    for stretch in open_:
        first, last = np.searchsorted(scores, [stretch.low, stretch.high])
        step = max(1, (last - first) // MOST)
        ends = [end for end in (stretch.low, stretch.high) if end < np.inf]
        found += [np.asarray(ends, float), scores[first:last:step].astype(float)]
    return np.unique(np.concatenate(found))
