"""Fronts: two end points by lexicographic training, then a grid of levels between them."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint.pareto.api import pareto_front
from setpoint.pareto.front import Front
from setpoint.pareto.points import FrontPoint

__all__ = ["Front", "FrontPoint", "pareto_front"]
