"""Streams without labels by the million rows: the evidence of an urn after every row.

The law of alerts and of ranks depends on the cell of each row alone, so a stream is a draw of
cells. A row multiplies the capital of every alternative by a quotient of two urns. With numba
(``pip install numba``) a million rows take some hundredths of a second; without it they are the
same, and slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint.certificates.martingales import FROM_START
from setpoint.certificates.polya_urn import TAIL_PART, UrnEvidence

try:
    from numba import njit
except ImportError:

    def njit(**_: Any) -> Any:
        """Leave a function as it is."""
        return lambda function: function


Array = Any
_NEAR = 3.0
"""A share so many standard deviations outside of a tail is inside with a chance below 2 %."""


@njit(fastmath={"reassoc"}, cache=False)
def _candidates(
    cells: Array, balls: Array, others: Array, tilts: Array, spread: float, block: int,
    floor: float, tails: Array,
) -> Any:  # fmt: skip
    """The rows after which the evidence could be an alarm, and the mixture after each of them.

    Args:
        cells: The cell of each row.
        balls: The urn of each alternative, ``[K, j]``.
        others: Its urn if the alternative is true, the same.
        tilts: See :class:`UrnEvidence`, the same.
        spread: The number of balls in ``others``.
        block: Rows between two restarts.
        floor: Rows after which the mixture is at least that are returned.
        tails: Balls of others and of alerts, the edge, and 1 or -1 for the upper and lower tail:
            rows after which the share of alerts is near it are returned, too.
    """
    size, ways = balls.shape
    total = balls[:, 0].sum()
    counts, later = np.zeros(size), np.zeros((size, ways))
    start, restarts = np.ones(ways), np.zeros(ways)
    rows, values, found = np.empty(len(cells), np.int64), np.empty(len(cells)), 0
    doublings, to_come = -1, 1.0
    for n in range(len(cells)):
        if n % block == 0:
            if n > 0:
                before = to_come
                to_come = 1 / (1 + np.log1p(n // block))
                restarts += before - to_come
            if int(np.log2(1 + n / total)) > doublings:
                doublings = int(np.log2(1 + n / total))
                for j in range(ways):
                    tilted = (balls[:, j] + counts) * tilts[:, j]
                    later[:, j] = tilted / tilted.sum()
        cell = cells[n]
        here, own, other, after = counts[cell], balls[cell], others[cell], later[cell]
        sums, of_other = 0.0, 1 / (spread + n)
        for j in range(ways):
            scale = (total + n) / (own[j] + here)
            start[j] *= (other[j] + here) * of_other * scale
            restarts[j] *= after[j] * scale
            sums += FROM_START * start[j] + (1 - FROM_START) * restarts[j]
        counts[cell] += 1
        value = sums / ways + (1 - FROM_START) * to_come
        keep = value >= floor
        for tail in range(len(tails)):
            whole = tails[tail, 0] + tails[tail, 1] + n + 1
            mean = (tails[tail, 1] + counts[1]) / whole
            away = tails[tail, 3] * (mean - tails[tail, 2])
            keep |= away > -_NEAR * np.sqrt(mean * (1 - mean) / (whole + 1))
        if keep:
            rows[found], values[found] = n, value
            found += 1
    return rows[:found], values[:found]


def urn_alarms(urn: UrnEvidence, cells: Array, alarm: float, looks: Sequence[int]) -> list[float]:
    """After how many rows a stream alarms, by looks after so many rows; infinity if never.

    Args:
        urn: Before its first row.
        cells: The cell of each row.
        alarm: The evidence of an alarm.
        looks: After how many rows one looks.
    """
    tables = (urn.balls, urn._alternatives(urn.spread), urn.tilts)
    tails = [(*tail.balls, tail.edge, 1.0 if tail.upper else -1.0) for tail in urn.tails]
    rows, values = _candidates(
        cells, *(np.ascontiguousarray(table.T) for table in tables), urn.spread,
        urn.evidence.block, alarm / 2, np.array(tails, float).reshape(-1, 4),
    )  # fmt: skip
    values = values * (1 - TAIL_PART * len(urn.tails))
    if urn.tails:
        alerts = np.cumsum(cells)[rows]
        counts = np.stack([rows + 1 - alerts, alerts], 1).astype(float)
        for tail in urn.tails:
            values += TAIL_PART * np.exp(tail.log_values(counts))
    hits = rows[values >= alarm] + 1
    return [float(min(hits[hits % look == 0], default=np.inf)) for look in looks]
