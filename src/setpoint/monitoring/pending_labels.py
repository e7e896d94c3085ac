"""Rows whose labels come later: what must be remembered of each until then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.axes.arrays import Floats
from setpoint.monitoring.incoming_rows import IncomingRows, read_labels, read_shares
from setpoint.monitoring.label_selection import ranks_of
from setpoint.rates import Where

MOST_WAITING = 200_000
"""Rows that may wait for a label; the oldest are dropped first."""
MOST_CHARACTERS = 20_000_000
"""The same for the length of their ids in JSON, so that the state can be read back."""


def _present(values: Sequence[float | None]) -> Floats | None:
    """A column of numbers, 1 where there is none; None if there are none at all."""
    if all(value is None for value in values):
        return None
    return np.array([1.0 if value is None else value for value in values])


def _characters(name: str) -> int:
    return len(json.dumps(name))


Waiting = tuple[int, list[int], int, float, float | None, float | None]


@dataclass(frozen=True)
class JoinedRows:
    """Rows that have got their labels, with what is remembered of each."""

    rows: IncomingRows
    blocks: NDArray[np.int64]
    """The number of the block that each came in."""
    ranks: Floats
    """The rank of each score among rows of the same decision and block, from 0 to 1."""
    ids: NDArray[Any]
    unknown: int
    """Labels of ids that no row waits with."""


@dataclass
class PendingLabels:
    """By id: what is remembered of a row without a label.

    That is its decision, slices (their places), block, rank, amount and stated share of labels.
    """

    waiting: dict[str, Waiting] = field(default_factory=dict)
    slices: list[Where] = field(default_factory=list)
    unknown: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self.characters = sum(map(_characters, self.waiting))

    def add(self, rows: IncomingRows, block: int) -> list[tuple[int, int]]:
        """Remember the rows without a label; block and decision of older rows that are dropped."""
        assert rows.ids is not None
        self.slices = self.slices or list(rows.slices)
        inside = np.array([rows.slices[where] for where in self.slices], bool)
        ranks = np.zeros(len(rows))
        for kind in (rows.alerts, ~rows.alerts):
            ranks[kind] = ranks_of(rows, kind)
        for row in np.flatnonzero(~rows.known).tolist():
            places = np.flatnonzero(inside[:, row]).tolist() if len(inside) else []
            amount, share = (
                None if c is None else float(c[row]) for c in (rows.amounts, rows.shares)
            )
            name, rank = str(rows.ids[row]), round(float(ranks[row]), 4)
            self.waiting[name] = (int(rows.alerts[row]), places, block, rank, amount, share)
            self.characters += _characters(name)
        dropped = []
        while len(self.waiting) > MOST_WAITING or self.characters > MOST_CHARACTERS:
            oldest = next(iter(self.waiting))
            dropped.append((self.waiting[oldest][2], self.waiting[oldest][0]))
            self._drop(oldest)
        self.dropped += len(dropped)
        return dropped

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
        columns = list(zip(*there, strict=True)) or [()] * 6
        told = None if shares is None else read_shares(shares, names)[found]
        rows = IncomingRows(
            margins=np.zeros(len(found)),
            alerts=np.array(columns[0], bool),
            known=np.ones(len(found), bool),
            labels=truth[found],
            slices={
                where: np.array([place in places for places in columns[1]], bool)
                for place, where in enumerate(self.slices)
            },
            shares=_present(columns[5]) if told is None else told,
            amounts=_present(columns[4]),
        )
        blocks, ranks = np.array(columns[2], np.int64), np.array(columns[3], float)
        return JoinedRows(rows, blocks, ranks, names[found], int(known.sum()) - len(found))

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
        waiting: dict[str, Any] = {name: tuple(row) for name, row in state["waiting"].items()}
        slices = [tuple((pair[0], pair[1]) for pair in where) for where in state["slices"]]
        return PendingLabels(waiting, slices, state["unknown"], state["dropped"])
