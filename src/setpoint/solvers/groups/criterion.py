"""Implicit thresholds with one threshold per group (ICO, example 6)."""

from __future__ import annotations

from typing import Any

from setpoint.problems import Problem
from setpoint.solvers.implicit import Implicit


class GroupImplicit(Implicit):
    """A criterion that trains one threshold per group; made by ``Implicit(problem)``."""

    def __init__(self, problem: Problem, **options: Any) -> None:
        raise NotImplementedError("Implicit does not train one threshold per group yet.")
