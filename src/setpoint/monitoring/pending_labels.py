"""Rows whose labels come later: what must be remembered of each until then."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.monitoring.incoming_rows import IncomingRows, read_labels, read_shares
from setpoint.rates import Where

MOST_WAITING = 200_000
"""Rows that may wait for a label; the oldest are dropped first."""
MOST_CHARACTERS = 20_000_000
"""The same for the length of their ids in JSON, so that the state can be read back."""


def _characters(name: str) -> int:
    return len(json.dumps(name))


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
    """By id: decision, slices (their places), period and amount of a row without a label."""

    waiting: dict[str, tuple[int, list[int], str, float | None]] = field(default_factory=dict)
    slices: list[Where] = field(default_factory=list)
    unknown: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self.characters = sum(map(_characters, self.waiting))

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
        inside = np.array([rows.slices[where] for where in self.slices], bool)
        for row in np.flatnonzero(~rows.known).tolist():
            places = np.flatnonzero(inside[:, row]).tolist() if len(inside) else []
            amount = None if rows.amounts is None else float(rows.amounts[row])
            name = str(rows.ids[row])
            self.waiting[name] = (int(rows.alerts[row]), places, period, amount)
            self.characters += _characters(name)
        while len(self.waiting) > MOST_WAITING or self.characters > MOST_CHARACTERS:
            self._drop(next(iter(self.waiting)))
            self.dropped += 1

    def _drop(self, name: str) -> None:
        del self.waiting[name]
        self.characters -= _characters(name)

    def join(self, ids: Any, labels: Any, shares: Any = None) -> JoinedRows:
        """The waiting rows that labels belong to. Nothing is changed."""
        names = np.asarray(ids).astype(str).reshape(-1)
        values, counts = np.unique(names, return_counts=True)
        if counts.max(initial=1) > 1:
            raise ValueError(f"The id {quoted(str(values[counts > 1][0]))} has two labels.")
        known, truth = read_labels(labels, np.zeros(len(names)))
        found = [row for row in np.flatnonzero(known).tolist() if names[row] in self.waiting]
        there = [self.waiting[names[row]] for row in found]
        amounts = [amount for *_, amount in there if amount is not None]
        rows = IncomingRows(
            margins=np.zeros(len(found)),
            alerts=np.array([row[0] == 1 for row in there], bool),
            known=np.ones(len(found), bool),
            labels=truth[found],
            slices={
                where: np.array([place in row[1] for row in there], bool)
                for place, where in enumerate(self.slices)
            },
            shares=None if shares is None else read_shares(shares, names)[found],
            amounts=np.array(amounts) if amounts and len(amounts) == len(there) else None,
        )
        periods = np.array([row[2] for row in there], dtype=object)
        return JoinedRows(rows, periods, names[found], int(known.sum()) - len(found))

    def forget(self, joined: JoinedRows) -> None:
        """Rows that have got their labels no longer wait."""
        for name in joined.ids:
            self._drop(str(name))
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
        waiting = {name: tuple(row) for name, row in state["waiting"].items()}
        slices = [tuple((pair[0], pair[1]) for pair in where) for where in state["slices"]]
        return PendingLabels(waiting, slices, state["unknown"], state["dropped"])
