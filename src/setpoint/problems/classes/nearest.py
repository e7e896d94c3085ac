"""The best shifts, or the nearest to what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint.problems.choice import Infeasible
from setpoint.problems.classes.data import Floats, read_data
from setpoint.problems.classes.evaluate import choose_classes
from setpoint.problems.classes.find import find
from setpoint.problems.problem import Problem


def best_shifts(
    problem: Problem,
    scores: Any,
    labels: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    classes: Sequence[Any] | None = None,
) -> tuple[Floats, str]:
    """The shifts ``[K]``, and what to say if they do not reach the targets (else nothing)."""
    given = (scores, labels, weights, groups, classes)
    try:
        return np.asarray(choose_classes(problem, *given).thresholds), ""
    except Infeasible as error:
        data = read_data(problem, *given)
        return find(problem, data).shifts, f"{error} The nearest are used."
