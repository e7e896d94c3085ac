"""Thresholds that were chosen, what they reach, and whether that is what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.areas import worst
from setpoint.axes.arrays import Floats, rounded_like
from setpoint.axes.inputs import Masks
from setpoint.axes.scan import tolerance
from setpoint.axes.specification import Specification
from setpoint.batch import describe
from setpoint.rates import Bound, Counts, Range, Tables


class Infeasible(ValueError):
    """No threshold reaches the targets on these data."""


@dataclass(frozen=True)
class Choice:
    """Thresholds that solve a problem on some data, and what they reach there."""

    thresholds: Any  # a tuple, one number each; for queries and groups {query: number}
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


def value_of(problem: Specification, tables: Tables, s: Floats, masks: Masks) -> float:
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


def _content(masks: Masks) -> str:
    positives, negatives = masks[()]
    return describe(float(positives.sum()), float(negatives.sum()))


def representable(threshold: float, scores: Any, s: Floats) -> float:
    """The threshold in the precision of the scores, deciding the same.

    Comparing float32 scores with a number rounds the number to float32 first, and between two
    neighbours there is nothing: the threshold is then the lower one.
    """
    rounded = float(rounded_like(scores, threshold))
    if np.array_equal(s > rounded, s > threshold):
        return rounded
    return float(s[s <= threshold].max())
