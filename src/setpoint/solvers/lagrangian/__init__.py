"""Multipliers, soft and proxy, and the iterates worth keeping."""

from setpoint.solvers.lagrangian.iterates import Iterate, Iterates
from setpoint.solvers.lagrangian.lagrangian import Lagrangian

__all__ = ["Iterate", "Iterates", "Lagrangian"]
