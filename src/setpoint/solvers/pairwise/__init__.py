"""Losses over pairs of a positive and a negative, without the pairs."""

from setpoint.solvers.pairwise.criterion import Pairwise

__all__ = ["Pairwise"]
