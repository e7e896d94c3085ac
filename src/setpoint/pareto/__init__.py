"""Fronts: two end points by lexicographic training, then a grid of levels between them."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint.pareto.front import Front
from setpoint.pareto.points import FrontPoint
from setpoint.pareto.training import pareto_front

__all__ = ["Front", "FrontPoint", "pareto_front"]
