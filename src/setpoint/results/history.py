"""Training curves: one series for every number a run has noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setpoint._checks import is_number

NOT_DRAWN = ("epoch", "step", "seconds", "time")


@dataclass(frozen=True)
class Series:
    """A named number over the epochs (or steps) in which it was noted."""

    name: str
    over: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def series(history: Sequence[Mapping[str, Any]]) -> list[Series]:
    """The numbers of ``history`` in the order of their first mention; gaps are left out.

    Example:
        >>> series([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25, "status": "held"}])
        [Series(name='loss', over='epoch', x=(1.0, 2.0), y=(0.5, 0.25))]
    """
    over = next((n for n in ("epoch", "step") if history and is_number(history[0].get(n))), "row")
    names = dict.fromkeys(str(name) for row in history for name in row if name not in NOT_DRAWN)
    found = []
    for name in names:
        points = [
            (float(row.get(over, place)), float(row[name]))
            for place, row in enumerate(history)
            if is_number(row.get(name)) and is_number(row.get(over, place))
        ]
        if points:
            x, y = zip(*points, strict=True)
            found.append(Series(name, over, x, y))
    return found
