"""Problems of several classes: scores ``[n, K]``, one shift a class, ``argmax(score - shift)``.

Numpy only. :mod:`find` chooses the shifts, :mod:`transport` solves coverage targets exactly,
:mod:`evaluate` gives true values.
"""

from setpoint.problems.classes.data import ClassData, read_data
from setpoint.problems.classes.decide import decide
from setpoint.problems.classes.find import Found, find
from setpoint.problems.classes.matrix import Matrix
from setpoint.problems.classes.nearest import best_shifts
from setpoint.problems.classes.numbers import numbered

__all__ = [
    "ClassData",
    "Found",
    "Matrix",
    "best_shifts",
    "decide",
    "find",
    "numbered",
    "read_data",
]
