"""What a monitor has seen, period by period, in bounded memory; and when a change began."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats

MOST_PERIODS = 400
"""When there are more, neighbours in the older half are put together."""


@dataclass(frozen=True)
class Alarm:
    """A test whose evidence has reached its limit."""

    test: str
    period: str
    """When that was noticed."""
    log_evidence: float


@dataclass
class Period:
    """A day, an hour or an update, with its counts."""

    name: str
    rows: int = 0
    alerts: dict[str, list[float]] = field(default_factory=dict)
    """By threshold: alerts, rows."""
    rates: dict[str, list[float]] = field(default_factory=dict)
    """By bound: events, relevant rows."""
    cells: dict[str, list[float]] = field(default_factory=dict)
    """By score or feature: the rows in each cell."""
    histogram: list[float] = field(default_factory=list)
    evidence: dict[str, float] = field(default_factory=dict)
    """By test: the log evidence at the end of the period."""
    intervals: dict[str, list[float]] = field(default_factory=dict)
    """By bound: the confidence sequence of all rows up to the end of the period."""

    def add(self, kind: str, name: str, counts: Any) -> None:
        """Add counts of a kind (``"alerts"``, ``"rates"``, ``"cells"``) under a name."""
        there = getattr(self, kind)
        old = there.get(name)
        new = np.asarray(counts, float)
        there[name] = (new if not old else np.asarray(old) + new).tolist()

    def absorb(self, later: Period) -> None:
        """Add the counts of the next period."""
        first = self.name.split(" to ")[0]
        self.name = f"{first} to {later.name.split(' to ')[-1]}"
        self.rows += later.rows
        for kind in ("alerts", "rates", "cells"):
            for name, counts in getattr(later, kind).items():
                self.add(kind, name, counts)
        if later.histogram:
            old = np.asarray(self.histogram) if self.histogram else 0.0
            self.histogram = (old + np.asarray(later.histogram)).tolist()
        self.evidence, self.intervals = later.evidence, later.intervals


class History:
    """Periods from the first to the present one."""

    def __init__(self, periods: list[Period] | None = None) -> None:
        self.periods = periods or []

    def open(self, name: str) -> Period:
        """The period of this name: the present one, or a new one."""
        if not self.periods or self.periods[-1].name != name:
            self.periods.append(Period(name))
            if len(self.periods) > MOST_PERIODS:
                self._compact()
        return self.periods[-1]

    def find(self, name: str) -> Period:
        """The period of this name; the present one if it was put together with others."""
        for period in reversed(self.periods):
            if period.name == name:
                return period
        return self.periods[-1]

    def _compact(self) -> None:
        half = MOST_PERIODS // 2
        for place in range(half - half % 2 - 2, -1, -2):
            self.periods[place].absorb(self.periods.pop(place + 1))

    def counts(self, kind: str, name: str) -> Floats:
        """The counts of every period under a name, ``[periods, c]``; zeros where there are none."""
        found = [getattr(period, kind).get(name) for period in self.periods]
        width = max((len(counts) for counts in found if counts), default=0)
        rows = [counts or [0.0] * width for counts in found]
        return np.array(rows, float).reshape(len(found), width)

    def state(self) -> list[dict[str, Any]]:
        """Plain numbers for JSON."""
        return [asdict(period) for period in self.periods]

    @staticmethod
    def restore(state: list[dict[str, Any]]) -> History:
        """Read :meth:`state` back."""
        return History([Period(**period) for period in state])


def change_point(gains: Floats) -> int:
    """The period with which a change most likely began.

    Args:
        gains: ``[periods, j]``: the log likelihood ratio of each period by each alternative.

    Returns:
        The place from which on the ratio of some alternative is largest.
    """
    if not len(gains):
        return 0
    later = np.cumsum(gains[::-1], axis=0)[::-1]
    return int(np.argmax(later.max(axis=1)))
