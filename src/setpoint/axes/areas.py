"""Areas under curves that users know.

Partial ROC-AUC with McClish's scaling, mean precision over recall, and for several classes AUC_mu
(Kleiman and Page, 2019) and the mean of one class against the rest.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.axes.choice import worst
from setpoint.axes.class_data import ClassData
from setpoint.axes.cuts import Cuts
from setpoint.axes.specification import Specification
from setpoint.rates import Array, Range, Rate, fpr, tnr, tpr


def area(problem: Specification, cuts: Cuts) -> float:
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
    return _mean_over_levels(x, np.where(np.isnan(y), worst(problem), y), swept)


def _is_roc(problem: Specification, swept: Range, of: Rate, over: Rate) -> bool:
    """Whether this is the ROC curve with these axes, of everyone or of one slice."""
    x, y = swept.expression, problem.objective
    if not (problem.maximize and isinstance(x, Rate) and isinstance(y, Rate)):
        return False
    where = dict(x.where)
    return (x, y) == ((of.on(**where), over.on(**where)) if where else (of, over))


def _mean_of_best(problem: Specification, x: Array, y: Array, swept: Range) -> float:
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


def _mean_over_levels(x: Array, y: Array, swept: Range) -> float:
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


def class_area(kind: str, data: ClassData) -> float:
    """The mean over pairs of classes, or over classes against the rest.

    Two classes are told apart by the difference of their scores, one and the rest by its own.
    """
    scores, labels, weights = data.scores, data.labels, data.weights
    count = scores.shape[1]
    if kind == "one_vs_all_auc":
        areas = [_auc(scores[:, k], labels == k, weights) for k in range(count)]
        return float(np.mean(areas))
    areas = []
    for one, other in combinations(range(count), 2):
        rows = (labels == one) | (labels == other)
        margin = scores[rows, one] - scores[rows, other]
        areas.append(_auc(margin, labels[rows] == one, weights[rows]))
    return float(np.mean(areas))


def _auc(scores: Floats, positive: NDArray[np.bool_], weights: Floats) -> float:
    """The share of pairs in the right order; equal ones count half."""
    values, place = np.unique(scores, return_inverse=True)
    p = np.bincount(place, weights * positive, len(values))
    n = np.bincount(place, weights * ~positive, len(values))
    below = np.cumsum(n) - n
    return float(p @ (below + n / 2) / (p.sum() * n.sum()))
