"""Who shares a threshold: everyone, a group, a class or a query. Never torch at import time.

An axis reads a batch, chooses thresholds on true counts, gives soft counts around them, and holds
them while the scores move (:mod:`setpoint.axes.implicit_function`).

Names are imported on first use: certificates read problems, and need no axis for that.
"""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.axes.axis import DEFAULTS, Outcome
    from setpoint.axes.cuts import tables_of
    from setpoint.axes.everyone import Everyone, PlainOutcome
    from setpoint.axes.order_statistics import spread
    from setpoint.axes.queries import Queries
    from setpoint.axes.registry import axis_of
    from setpoint.axes.sample import Sample, read_sample
    from setpoint.axes.soft_counts import SoftCounts, gradient_of

__all__ = [
    "DEFAULTS",
    "Everyone",
    "Outcome",
    "PlainOutcome",
    "Queries",
    "Sample",
    "SoftCounts",
    "axis_of",
    "gradient_of",
    "read_sample",
    "spread",
    "tables_of",
]

__getattr__ = import_lazily(__name__)
