"""The axis of every kind of problem."""

from typing import Any

from setpoint.axes.axis import Axis
from setpoint.axes.classes import Classes
from setpoint.axes.everyone import Everyone
from setpoint.axes.groups import Groups
from setpoint.axes.queries import Queries
from setpoint.axes.specification import Specification

AXES: dict[str, type[Axis[Any]]] = {
    "everyone": Everyone,
    "groups": Groups,
    "classes": Classes,
    "queries": Queries,
}
"""The axis of each kind of problem."""


def axis_of(problem: Specification, **options: Any) -> Axis[Any]:
    """The axis of a problem's thresholds; options are those of :class:`Axis`."""
    return AXES[problem.kind](problem, **options)
