"""Who shares a threshold: everyone, a group, a class or a query. Never torch at import time.

An axis reads a batch, chooses thresholds on true counts, gives soft counts around them, and holds
them while the scores move (:mod:`setpoint.axes.implicit_function`).

Names are imported on first use: certificates read problems, and need no axis for that.
"""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.axes.axis import DEFAULTS, Axis, Defaults, Outcome
    from setpoint.axes.classes import Classes
    from setpoint.axes.cuts import tables_of
    from setpoint.axes.everyone import Everyone, PlainOutcome
    from setpoint.axes.groups import Groups
    from setpoint.axes.implicit_function import Held, hold
    from setpoint.axes.order_statistics import spread
    from setpoint.axes.queries import Queries
    from setpoint.axes.registry import AXES, axis_of
    from setpoint.axes.sample import Sample, read_sample
    from setpoint.axes.soft_counts import SoftCounts, gradient_of

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
    "spread",
    "tables_of",
]

__getattr__ = import_lazily(
    __name__,
    {
        "DEFAULTS": "axis",
        "Axis": "axis",
        "Defaults": "axis",
        "Outcome": "axis",
        "Classes": "classes",
        "Everyone": "everyone",
        "PlainOutcome": "everyone",
        "spread": "order_statistics",
        "Groups": "groups",
        "Held": "implicit_function",
        "hold": "implicit_function",
        "Queries": "queries",
        "AXES": "registry",
        "axis_of": "registry",
        "Sample": "sample",
        "read_sample": "sample",
        "SoftCounts": "soft_counts",
        "gradient_of": "soft_counts",
        "tables_of": "cuts",
    },
)
