"""Rows whose labels come later: what must be remembered of each until then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.monitoring.incoming_rows import IncomingRows, read_labels
from setpoint.rates import Where

MOST = 200_000
"""Rows that may wait for a label; the oldest are dropped first."""


@dataclass(frozen=True)
class JoinedRows:
    """Rows that have got their labels, with the period that each was counted in."""

    rows: IncomingRows
    periods: NDArray[Any]
    ids: NDArray[Any]
    unknown: int
    """Labels of ids that no row waits with."""


@dataclass
class PendingLabels:
    """By id: the decision, the slices (as bits) and the period of a row without a label."""

    waiting: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    slices: list[Where] = field(default_factory=list)
    unknown: int = 0
    dropped: int = 0

    def check(self, ids: NDArray[Any]) -> None:
        """ValueError if an id is there twice, or waits already."""
        values, counts = np.unique(ids, return_counts=True)
        twice = [str(value) for value in values[counts > 1]]
        twice += [str(value) for value in values if str(value) in self.waiting]
        if twice:
            raise ValueError(
                f"The id {quoted(twice[0])} occurs twice: an id names one row. Was the file "
                "counted before?"
            )

    def add(self, rows: IncomingRows, period: str) -> None:
        """Remember the rows without a label."""
        assert rows.ids is not None
        self.slices = self.slices or list(rows.slices)
        bits = np.zeros(len(rows), np.int64)
        for place, where in enumerate(self.slices):
            bits |= rows.slices[where].astype(np.int64) << place
        for row in np.flatnonzero(~rows.known).tolist():
            self.waiting[str(rows.ids[row])] = (int(rows.alerts[row]), int(bits[row]), period)
        while len(self.waiting) > MOST:
            del self.waiting[next(iter(self.waiting))]
            self.dropped += 1

    def join(self, ids: Any, labels: Any, shares: Any = None) -> JoinedRows:
        """The waiting rows that labels belong to. Nothing is changed."""
        names = np.asarray(ids).astype(str).reshape(-1)
        values, counts = np.unique(names, return_counts=True)
        if counts.max(initial=1) > 1:
            raise ValueError(f"The id {quoted(str(values[counts > 1][0]))} has two labels.")
        known, truth = read_labels(labels, np.zeros(len(names)))
        found = [row for row in np.flatnonzero(known).tolist() if names[row] in self.waiting]
        there = [self.waiting[names[row]] for row in found]
        bits = np.array([bit for _, bit, _ in there], np.int64)
        weights = (
            None if shares is None else np.broadcast_to(np.asarray(shares, float), names.shape)
        )
        rows = IncomingRows(
            margins=np.zeros(len(found)),
            alerts=np.array([alert == 1 for alert, _, _ in there], bool),
            known=np.ones(len(found), bool),
            labels=truth[found],
            slices={where: (bits >> place & 1) == 1 for place, where in enumerate(self.slices)},
            shares=None if weights is None else np.array(weights[found]),
        )
        periods = np.array([period for _, _, period in there], dtype=object)
        return JoinedRows(rows, periods, names[found], int(known.sum()) - len(found))

    def forget(self, joined: JoinedRows) -> None:
        """Rows that have got their labels no longer wait."""
        for name in joined.ids:
            del self.waiting[str(name)]
        self.unknown += joined.unknown

    def state(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "waiting": {name: list(row) for name, row in self.waiting.items()},
            "slices": [[list(pair) for pair in where] for where in self.slices],
            "unknown": self.unknown,
            "dropped": self.dropped,
        }

    @staticmethod
    def restore(state: dict[str, Any]) -> PendingLabels:
        """Read :meth:`state` back."""
        waiting = {name: (row[0], row[1], row[2]) for name, row in state["waiting"].items()}
        slices = [tuple((pair[0], pair[1]) for pair in where) for where in state["slices"]]
        return PendingLabels(waiting, slices, state["unknown"], state["dropped"])
