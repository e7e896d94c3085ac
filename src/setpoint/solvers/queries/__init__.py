"""Implicit thresholds of queries (section 6.3 of the paper), one for each, without multipliers."""

from setpoint.solvers.queries.criterion import QueryImplicit

__all__ = ["QueryImplicit"]
