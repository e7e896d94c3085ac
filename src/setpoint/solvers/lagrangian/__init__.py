"""Multipliers, soft and proxy, and the iterates worth keeping."""

from setpoint.solvers.lagrangian.criterion import Lagrangian
from setpoint.solvers.lagrangian.iterates import Iterate, Iterates

__all__ = ["Iterate", "Iterates", "Lagrangian"]
