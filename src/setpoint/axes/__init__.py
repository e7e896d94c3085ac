"""Who shares a threshold: everyone, a group, a class or a query. Never torch at import time.

An axis reads a batch, chooses thresholds on true counts, gives soft counts around them, and holds
them while the scores move (:mod:`setpoint.axes.implicit_function`).
"""

from typing import Any

from setpoint.axes.axis import DEFAULTS, Axis, Defaults, Outcome
from setpoint.axes.classes import Classes
from setpoint.axes.everyone import Everyone, PlainOutcome, soft_counts, spread
from setpoint.axes.groups import Groups
from setpoint.axes.implicit_function import Held, hold
from setpoint.axes.queries import Queries
from setpoint.axes.sample import Sample, read_sample
from setpoint.axes.soft_counts import SoftCounts, gradient_of, tables_of
from setpoint.axes.specification import Specification

AXES: dict[str, type[Axis[Any]]] = {
    "plain": Everyone,
    "groups": Groups,
    "classes": Classes,
    "queries": Queries,
}
"""The axis of each kind of problem."""


def axis_of(problem: Specification, **options: Any) -> Axis[Any]:
    """The axis of a problem's thresholds; options are those of :class:`Axis`."""
    return AXES[problem.kind](problem, **options)


__all__ = [
    "AXES",
    "DEFAULTS",
    "Axis",
    "Classes",
    "Defaults",
    "Everyone",
    "Groups",
    "Held",
    "Outcome",
    "PlainOutcome",
    "Queries",
    "Sample",
    "SoftCounts",
    "axis_of",
    "gradient_of",
    "hold",
    "read_sample",
    "soft_counts",
    "spread",
    "tables_of",
]
