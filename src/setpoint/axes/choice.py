"""Chosen thresholds, the value they reach, and whether it is what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, rounded_like
from setpoint.axes.sample import Sample
from setpoint.axes.scan import tolerance
from setpoint.axes.specification import Specification
from setpoint.rates import Bound, Expression, Range, Rate, Tables


class Infeasible(ValueError):
    """No threshold reaches the targets on these data.

    Examples:
        >>> from setpoint import Problem, fpr, recall
        >>> strict = Problem(maximize=recall, subject_to=[fpr <= 0.1, recall >= 0.9])
        >>> try:
        ...     strict.evaluate([3.0, 2.0, 1.0], [0, 1, 0])
        ... except Infeasible:
        ...     print("no threshold has both")
        no threshold has both
    """


@dataclass(frozen=True)
class Choice:
    """Thresholds that solve a problem on some data, and what they reach there.

    Attributes:
        thresholds: A tuple of numbers; for groups and queries ``{group or query: number}``.
        value: What ``problem.evaluate`` gives on these data: the objective at the thresholds, or
            the area over a range.
        rates: Every rate at the thresholds, the mean over several of them.

    Examples:
        >>> from setpoint import fnr_at_fpr
        >>> fnr_at_fpr(0.5).choose([3.0, 2.0, 1.0, 0.0], [1, 0, 1, 0]).rates
        {'fnr': 0.0, 'fpr': 0.5}
    """

    thresholds: Any
    value: float
    rates: Mapping[str, float]


def objective_value(problem: Specification, tables: Tables, sample: Sample) -> float:
    """The mean objective. 0/0 is its worst value, unless the data leave no other."""
    values = problem.objective.of(tables)
    if np.isnan(values).any():
        ends = sample.tables_at(np.array([[-np.inf, np.inf]]))
        if not np.isnan(problem.objective.of(ends)).all():
            values = np.where(np.isnan(values), worst(problem), values)
    return defined(problem, float(np.mean(values)), sample)


def defined(problem: Specification, value: float, sample: Sample) -> float:
    """The value, or an error that says which examples are missing."""
    if np.isnan(value):
        raise ValueError(
            f"`{problem.objective}` is 0/0 here: one of its denominators is zero. "
            f"The data have {sample.content}; pass data with examples of every kind it counts."
        )
    return value


def rates_reached(problem: Specification, value: float, tables: Tables) -> dict[str, float]:
    """The objective and what the targets bound, by their texts; means over several thresholds."""
    found = {str(problem.objective): value}
    for target in problem.subject_to:
        found.setdefault(str(target.expression), float(np.mean(target.expression.of(tables))))
    return found


def check_feasible(problem: Specification, tables: Tables, sample: Sample) -> None:
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
                f"{target.expression} {nearest}. The data have {sample.content}. "
                "Loosen the target, or pass more data."
            )


def size_of(rate: Rate, tables: Tables) -> float:
    """The smallest denominator of a rate, over thresholds."""
    return float(np.min(rate.denominator.of(rate.table(tables))))


def of_one(expression: Expression, tables: Tables, weight: float) -> float:
    """How much an example of this weight changes an expression, at most."""
    sizes = [size for size in (size_of(rate, tables) for rate in expression.rates()) if size > 0]
    return max(1.0, expression.scale) * weight / min(sizes) if sizes else 0.0


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
