"""Which of several proved thresholds to take.

With an objective, the threshold that it likes best. With bounds alone, under a cap or for precision
the lowest, which finds most; under floors only the highest, which alarms least.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setpoint.axes.arrays import Floats
from setpoint.certificates.goals import CertificateGoal
from setpoint.certificates.proofs import ThresholdRange, ThresholdRule, values_at
from setpoint.certificates.regions import weights
from setpoint.certificates.sample import EVERYONE, CalibrationSample, Subset
from setpoint.certificates.sample_splitting import Merit
from setpoint.rates import Expression, Quotient, Rate

_MOST = 100_000
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
        step = max(1, (last - first) // _MOST)
        ends = [end for end in (each.low, each.high) if end < np.inf]
        found += [np.asarray(ends, float), scores[first:last:step].astype(float)]
    return np.unique(np.concatenate(found))
