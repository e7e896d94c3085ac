"""One threshold per group, coupled by what has to hold between the groups."""

from setpoint.solvers.groups.criterion import GroupImplicit

__all__ = ["GroupImplicit"]
