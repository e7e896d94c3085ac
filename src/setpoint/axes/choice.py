"""Chosen thresholds, the value they reach, and whether it is what was asked for; areas of curves.

Areas are those that users know: partial ROC-AUC with McClish's scaling, mean precision over recall,
and for several classes AUC_mu (Kleiman and Page, 2019) and the mean of one class against the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats, rounded_like
from setpoint.axes.class_data import ClassData
from setpoint.axes.cuts import Cuts
from setpoint.axes.sample import Masks
from setpoint.axes.scan import tolerance
from setpoint.axes.specification import Specification
from setpoint.batch import describe
from setpoint.rates import Array, Bound, Counts, Range, Rate, Tables, fpr, tnr, tpr


class Infeasible(ValueError):
    """No threshold reaches the targets on these data."""


@dataclass(frozen=True)
class Choice:
    """Thresholds that solve a problem on some data, and what they reach there.

    Attributes:
        thresholds: A tuple of numbers; for groups and queries ``{group or query: number}``.
        value: What ``problem.evaluate`` gives on these data: the objective at the thresholds, or
            the area over a range.
        rates: Every rate at the thresholds, the mean over several of them.
    """

    thresholds: Any
    value: float
    rates: Mapping[str, float]


def tables_at(s: Floats, thresholds: Floats, masks: Masks) -> Tables:
    """Hard counts by slice at thresholds that stand in rows, ``[m, 1]`` or ``[m, n]``."""
    accepted = s > thresholds
    tables = {}
    for where, (p, n) in masks.items():
        tp, fp = accepted @ p, accepted @ n
        tables[where] = Counts(tp, fp, p.sum() - tp, n.sum() - fp, p.sum(), n.sum())
    return tables


def objective_value(problem: Specification, tables: Tables, s: Floats, masks: Masks) -> float:
    """The mean objective. 0/0 is its worst value, unless the data leave no other."""
    values = problem.objective.of(tables)
    if np.isnan(values).any():
        ends = tables_at(s, np.array([[-np.inf], [np.inf]]), masks)
        if not np.isnan(problem.objective.of(ends)).all():
            values = np.where(np.isnan(values), worst(problem), values)
    return defined(problem, float(np.mean(values)), masks)


def defined(problem: Specification, value: float, masks: Masks) -> float:
    """The value, or an error that says which examples are missing."""
    if np.isnan(value):
        raise ValueError(
            f"`{problem.objective}` is 0/0 here: one of its denominators is zero. "
            f"The data have {_content(masks)}; pass data with examples of every kind it counts."
        )
    return value


def rates_reached(problem: Specification, value: float, tables: Tables) -> dict[str, float]:
    """The objective and what the targets bound, by their texts; means over several thresholds."""
    found = {str(problem.objective): value}
    for target in problem.subject_to:
        found.setdefault(str(target.expression), float(np.mean(target.expression.of(tables))))
    return found


def check_feasible(problem: Specification, tables: Tables, masks: Masks) -> None:
    """Bounds must hold; a setpoint is the nearest attainable rate and always does."""
    for target in problem.subject_to:
        value = target.expression.of(tables)
        if isinstance(target, Range) and target.floors:
            gap = np.asarray(target.levels(len(problem.points))) - value
            missed = not np.max(gap) <= tolerance(target.expression)
        elif isinstance(target, Bound):
            missed = not np.max(target.gap(tables)) <= tolerance(target.expression)
        else:
            missed = bool(np.isnan(value).any())
        if missed:
            reached = float(np.mean(value))
            nearest = "it is 0/0" if np.isnan(reached) else f"the nearest gives {reached:.6g}"
            raise Infeasible(
                f"No threshold reaches `{' and '.join(map(str, problem.subject_to))}`: for "
                f"{target.expression} {nearest}. The data have {_content(masks)}. "
                "Loosen the target, or pass more data."
            )


def worst(problem: Specification) -> float:
    """What 0/0 counts as: the worst share; NaN if the objective is no share."""
    if not problem.objective.is_share:
        return float("nan")
    return 0.0 if problem.maximize else 1.0


def representable(threshold: float, scores: Any, s: Floats) -> float:
    """The threshold in the precision of the scores, deciding the same.

    Comparing float32 scores with a number rounds the number to float32 first, and between two
    neighbours there is nothing: the threshold is then the lower one.
    """
    rounded = float(rounded_like(scores, threshold))
    if np.array_equal(s > rounded, s > threshold):
        return rounded
    return float(s[s <= threshold].max())


def _content(masks: Masks) -> str:
    positives, negatives = masks[()]
    return describe(float(positives.sum()), float(negatives.sum()))


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
    return _mean(x, np.where(np.isnan(y), worst(problem), y), swept)


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
