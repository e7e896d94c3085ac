"""The value of a problem as a score by which models are compared: greater is better."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.axes.areas import worst
from setpoint.axes.choice import Infeasible
from setpoint.problems.problem import Problem


def merit(problem: Problem, scores: Any, labels: Any, **given: Any) -> float:
    """The objective on these data, negated if it is minimized.

    Where no threshold meets the targets it is the worst there is: of a share the worst share, of
    any other objective minus infinity, so that a model that breaks the targets never wins.

    Args:
        problem: What is wanted.
        scores: As for :meth:`Problem.evaluate`.
        labels: As there.
        **given: Whatever else is known of each example.
    """
    try:
        value = problem.evaluate(scores, labels, **given)
    except Infeasible:
        value = worst(problem)
        if np.isnan(value):
            return -np.inf
    return float(value if problem.maximize else -value)
