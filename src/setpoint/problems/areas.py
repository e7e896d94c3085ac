"""Areas as users know them: partial ROC-AUC with McClish's scaling, mean precision over recall."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.problems.cuts import Cuts
from setpoint.problems.problem import Problem
from setpoint.rates import Range, Rate, fpr, tnr, tpr

Array = Any


def area(problem: Problem, cuts: Cuts) -> float:
    """The objective over the swept range; NaN if it is undefined on these data.

    For ``maximize tpr over fpr`` it is the trapezoid area under the ROC curve, scaled by McClish so
    that chance is 0.5 (scikit-learn's ``roc_auc_score(max_fpr=...)``); so it is for ``maximize tnr
    over tpr``, the same curve with both classes swapped. Otherwise it is the mean of the objective,
    at each level taken at the first cut that reaches it (over recall from 0 to 1 that is
    scikit-learn's ``average_precision_score``), or at the best one that does, for a rate that goes
    up and down (precision).
    """
    swept, tables, valid = problem.swept, cuts.tables(), cuts.valid()[0, 0]
    assert swept is not None
    x, y, valid = np.broadcast_arrays(
        swept.expression.of(tables), problem.objective.of(tables), valid
    )
    x, y = x[valid], y[valid]
    if swept.floors:
        return _mean_of_best(problem, x, y, swept)
    if np.isnan(x).any() or np.isnan(y).all():
        return float("nan")
    if _is_roc(problem, swept, fpr, tpr):
        return _mcclish(x, y, swept.low, swept.high)
    if _is_roc(problem, swept, tpr, tnr):
        return _mcclish(1 - x[::-1], y[::-1], 1 - swept.high, 1 - swept.low)
    return _mean(x, np.where(np.isnan(y), worst(problem), y), swept)


def worst(problem: Problem) -> float:
    """What 0/0 counts as: the worst share there is. Of other objectives none is known: NaN."""
    if not problem.objective.is_share:
        return float("nan")
    return 0.0 if problem.maximize else 1.0


def _is_roc(problem: Problem, swept: Range, of: Rate, over: Rate) -> bool:
    """Whether this is the ROC curve with these axes, of everyone or of one slice."""
    x, y = swept.expression, problem.objective
    if not (problem.maximize and isinstance(x, Rate) and isinstance(y, Rate)):
        return False
    where = dict(x.where)
    return (x, y) == ((of.on(**where), over.on(**where)) if where else (of, over))


def _mean_of_best(problem: Problem, x: Array, y: Array, swept: Range) -> float:
    """The mean over levels of the best ``y`` among all cuts whose ``x`` reaches the level.

    A level that no cut reaches counts as the worst value; where ``x`` is 0/0 it reaches nothing.
    """
    there = ~np.isnan(x)
    if not there.any() or np.isnan(y).all():
        return float("nan")
    lost = worst(problem)
    x, y = x[there], np.where(np.isnan(y), lost, y)[there]
    order = np.argsort(x)
    better = np.maximum if problem.maximize else np.minimum
    best = better.accumulate(y[order][::-1])[::-1]
    steps = np.diff(np.clip([swept.low, *x[order], swept.high], swept.low, swept.high))
    values = np.array([*best, lost])
    return float(steps[steps > 0] @ values[steps > 0] / (swept.high - swept.low))


def _mean(x: Array, y: Array, swept: Range) -> float:
    """The mean of ``y`` over levels of ``x``; where none reaches a level, at the nearest rate."""
    held_from_below = swept.setpoints(1)[0].caps
    first = np.flatnonzero(x == x[0])[-1] if held_from_below else 0
    last = -1 if held_from_below else np.flatnonzero(x == x[-1])[0]
    ends = (swept.low, swept.high) if x[0] <= x[-1] else (swept.high, swept.low)
    x = np.clip([ends[0], *x, ends[1]], swept.low, swept.high)
    y = np.array([y[first], *y, y[last]])
    y = y[:-1] if held_from_below else y[1:]
    steps = abs(np.diff(x))
    return float(steps[steps > 0] @ y[steps > 0] / (swept.high - swept.low))


def _mcclish(x: Array, y: Array, low: float, high: float) -> float:
    """The area of every trapezoid between two points of the curve, cut off at both ends."""
    left, right = np.clip(x[:-1], low, high), np.clip(x[1:], low, high)
    rise, run = np.diff(y), np.diff(x)
    slope = np.divide(rise, run, out=np.zeros_like(run), where=run > 0)
    middle = y[:-1] + slope * ((left + right) / 2 - x[:-1])
    chance = (high**2 - low**2) / 2
    excess = float((right - left) @ middle) - chance
    return 0.5 * (1 + excess / (high - low - chance))
