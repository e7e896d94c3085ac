"""A goal in words, taken apart: what is made good, and the bounds that must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.problems import Problem
from setpoint.rates import Bound, Counts, Expression, Setpoint, Where
from setpoint.results.measured import Measured, measure, tables_of


@dataclass(frozen=True)
class Goal:
    """The bounds of a sentence and, unless it had bounds alone, its problem."""

    sentence: str
    problem: Problem | None
    bounds: tuple[Bound | Setpoint, ...]

    @property
    def objective(self) -> Expression | None:
        """What is made large or small; None for bounds alone, or for an area under a curve."""
        one = self.problem is not None and self.problem.swept is None
        return self.problem.objective if one and self.problem is not None else None

    @property
    def slices(self) -> set[Where]:
        """The slices of the data that it looks at, everyone aside."""
        bounded = {rate.where for bound in self.bounds for rate in bound.expression.rates()}
        if self.objective is not None:
            bounded |= {rate.where for rate in self.objective.rates()}
        return bounded - {()}


def read_goal(sentence: str) -> Goal:
    """Take a sentence apart: a whole problem, or bounds joined by ``and``.

    Example:
        >>> read_goal("fpr <= 0.01").bounds
        (fpr <= 0.01,)
        >>> read_goal("maximize recall subject to fpr <= 0.01").objective
        recall
    """
    if sentence.split()[:1] in (["minimize"], ["maximize"]):
        problem = Problem.parse(sentence)
        return Goal(sentence, problem, problem.points[0] if problem.swept is None else ())
    bounds = Problem.parse(f"minimize error subject to {sentence}").points[0]
    return Goal(sentence, None, bounds)


def counts(
    goal: Goal, accepted: NDArray[np.bool_], labels: NDArray[np.bool_], groups: Any
) -> dict[Where, Counts]:
    """The tables that ``goal`` is measured on; a slice that cannot be told apart is left out."""
    inside: dict[Where, NDArray[np.bool_]] = {}
    for where in goal.slices:
        if groups is not None and len(where) == 1:
            same = np.asarray(groups == where[0][1])
            inside[where] = (
                same if same.any() else np.asarray(groups.astype(str) == f"{where[0][1]}")
            )
    return tables_of(accepted, labels, inside)


def measured(expression: Expression, tables: Mapping[Where, Counts], confidence: float) -> Measured:
    """As :func:`measure`, NaN if a slice is missing."""
    if any(rate.where not in tables for rate in expression.rates()):
        return Measured(float("nan"), None, None, None)
    return measure(expression, tables, confidence)
