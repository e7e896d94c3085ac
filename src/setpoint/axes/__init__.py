"""Who shares a threshold: everyone, a group, a class or a query. Never torch at import time.

An axis reads a batch, chooses thresholds on true counts, gives soft counts around them, and holds
them while the scores move (:mod:`setpoint.axes.implicit_function`).

Names are imported on first use: certificates read problems, and need no axis for that.
"""

from typing import TYPE_CHECKING, Any

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.axes.axis import DEFAULTS, Axis, Outcome
    from setpoint.axes.classes import Classes
    from setpoint.axes.cuts import tables_of
    from setpoint.axes.everyone import Everyone, PlainOutcome
    from setpoint.axes.groups import Groups
    from setpoint.axes.order_statistics import spread
    from setpoint.axes.queries import Queries
    from setpoint.axes.sample import Sample, read_sample
    from setpoint.axes.soft_counts import SoftCounts, gradient_of
    from setpoint.axes.specification import Specification

__all__ = [
    "DEFAULTS",
    "Axis",
    "Classes",
    "Everyone",
    "Groups",
    "Outcome",
    "PlainOutcome",
    "Queries",
    "Sample",
    "SoftCounts",
    "Specification",
    "axis_of",
    "gradient_of",
    "read_sample",
    "spread",
    "tables_of",
]

__getattr__ = import_lazily(__name__)

AXES = {
    "everyone": "Everyone",
    "groups": "Groups",
    "classes": "Classes",
    "queries": "Queries",
}
"""The class of each kind of axis, by name: it is imported for the first problem of that kind."""


def axis_of(problem: "Specification", **options: Any) -> "Axis[Any]":
    """The axis of a problem's thresholds; options are those of :class:`Axis`."""
    named: Any = __getattr__(AXES[problem.kind])
    made: Axis[Any] = named(problem, **options)
    return made
