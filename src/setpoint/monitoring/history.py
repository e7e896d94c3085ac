"""What a monitor has seen, period by period, in bounded memory; and when a change began."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
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
    since: str
    """The period with which the change most likely began, as it was found then."""
    log_evidence: float


@dataclass
class Period:
    """A day, an hour or an update, with its counts."""

    name: str
    rows: int = 0
    alerts: dict[str, list[float]] = field(default_factory=dict)
    """By threshold: alerts, rows."""
    rates: dict[str, list[float]] = field(default_factory=dict)
    """By bound: its counts, such as events and relevant rows."""
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
        there[name] = [a + b for a, b in zip_longest(old or (), map(float, counts), fillvalue=0.0)]

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
    """Periods from the first to the present one.

    Attributes:
        periods: Those of the present certificate.
        earlier: Those of the certificates before it, of each at most half of the present one's.
    """

    def __init__(
        self, periods: list[Period] | None = None, earlier: list[Period] | None = None
    ) -> None:
        self.periods = periods or []
        self.earlier = earlier or []
        self.kept: set[str] = set()
        """Names of periods that begin a change: they are not put into the one before."""

    @property
    def every(self) -> list[Period]:
        """All periods, those of earlier certificates first."""
        return [*self.earlier, *self.periods]

    def close(self) -> None:
        """A new certificate begins: keep what there was as earlier periods."""
        self.kept = set()
        for period in self.periods:
            period.histogram, period.cells = [], {}
        self.earlier, self.periods = self.every, []
        while len(self.earlier) > MOST_PERIODS:
            _halve(self.earlier, len(self.earlier) // 2)

    def open(self, name: str) -> Period:
        """The period of this name: the present one, or a new one."""
        if not self.periods or self.periods[-1].name != name:
            self.periods.append(Period(name))
            if len(self.periods) > MOST_PERIODS:
                _halve(self.periods, MOST_PERIODS // 2, self.kept)
        return self.periods[-1]

    def find(self, name: str) -> Period:
        """The period of this name; the present one if it was put together with others."""
        for period in reversed(self.periods):
            if period.name == name:
                return period
        return self.periods[-1]

    def counts(self, kind: str, name: str) -> Floats:
        """The counts of every period under a name, ``[periods, c]``; zeros where there are none."""
        found = [getattr(period, kind).get(name) for period in self.periods]
        width = max((len(counts) for counts in found if counts), default=0)
        rows = [[*(counts or ()), *[0.0] * width][:width] for counts in found]
        return np.array(rows, float).reshape(len(found), width)

    def alerts(self, name: str) -> tuple[float, float]:
        """How many alerts there were in all periods, of how many rows."""
        if not self.periods:
            return 0.0, 0.0
        alerts, rows = self.counts("alerts", name).sum(0)
        return alerts, rows

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        both = {"periods": self.periods, "earlier": self.earlier}
        return {name: [asdict(period) for period in part] for name, part in both.items()}

    @staticmethod
    def restore(state: dict[str, Any]) -> History:
        """Read :meth:`state` back."""
        both = ([Period(**period) for period in state[name]] for name in ("periods", "earlier"))
        return History(*both)


def _halve(periods: list[Period], among: int, kept: Collection[str] = ()) -> None:
    """Put neighbours together among the first ``among`` periods, but none that is kept."""
    for place in range(among - among % 2 - 2, -1, -2):
        if periods[place + 1].name.split(" to ")[0] not in kept:
            periods[place].absorb(periods.pop(place + 1))


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
