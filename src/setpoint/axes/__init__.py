"""Who shares a threshold: everyone, a group, a class or a query. Never torch at import time.

An axis reads a batch, chooses thresholds on true counts, gives soft counts around them, and holds
them while the scores move (:mod:`setpoint.axes.implicit_function`).

Names are imported on first use: certificates read problems, and need no axis for that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.axes.axis import DEFAULTS, Axis, Outcome
    from setpoint.axes.cuts import tables_of
    from setpoint.axes.everyone import Everyone, PlainOutcome
    from setpoint.axes.order_statistics import spread
    from setpoint.axes.queries import Queries
    from setpoint.axes.sample import Sample, read_sample
    from setpoint.axes.soft_counts import SoftCounts, gradient_of
    from setpoint.axes.specification import Specification

__all__ = [
    "DEFAULTS",
    "Axis",
    "Everyone",
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


def axis_of(problem: "Specification", **options: Any) -> "Axis[Any]":
    """The axis of a problem's thresholds; options are those of :class:`Axis`.

    It is the class of the problem's kind in the file of that name: ``groups.Groups``.
    """
    file = import_module(f"{__name__}.{problem.kind}")
    axis: type[Axis[Any]] = getattr(file, problem.kind.capitalize())
    return axis(problem, **options)
