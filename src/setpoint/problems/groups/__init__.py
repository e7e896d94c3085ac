"""One threshold per group: what is asked between groups, and the cuts that answer it best."""

from setpoint.problems.groups.cells import Cells, cells_of, columns_of, key_of
from setpoint.problems.groups.chosen import choose_groups, codes_of, threshold_column
from setpoint.problems.groups.solve import Solver

__all__ = [
    "Cells",
    "Solver",
    "cells_of",
    "choose_groups",
    "codes_of",
    "columns_of",
    "key_of",
    "threshold_column",
]
