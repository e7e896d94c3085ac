"""Solvers: ways to train for a problem. One paper, one file."""

from setpoint.solvers.baselines import cross_entropy, focal
from setpoint.solvers.implicit import Implicit

__all__ = ["Implicit", "cross_entropy", "focal"]
