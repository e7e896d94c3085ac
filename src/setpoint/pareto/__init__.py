"""Fronts: two end points by lexicographic training, then a grid of levels between them."""

from setpoint.pareto.api import pareto_front
from setpoint.pareto.front import Front
from setpoint.pareto.points import Point

__all__ = ["Front", "Point", "pareto_front"]
