"""Single examples moved from class to class along shortest paths, until counts are exact."""

from __future__ import annotations

import numpy as np

from setpoint.problems.classes.data import Floats, Whole


def finish(scores: Floats, shifts: Floats, quotas: Floats, weights: Floats) -> Whole:
    """Move single examples along shortest paths while the counts come closer."""
    shifts = shifts.copy()
    held = np.argmax(scores - shifts, axis=1)
    counts = np.bincount(held, weights, len(shifts))
    for _ in range(4 * len(scores)):
        excess = counts - quotas
        path = _cheapest(scores, shifts, held, excess)
        if path is None:
            break
        new = counts.copy()
        for row, i, j in path:
            new[i] -= weights[row]
            new[j] += weights[row]
        if np.abs(new - quotas).sum() >= np.abs(excess).sum() - 1e-9 * weights.max():
            break
        for row, _, j in path:
            held[row] = j
        counts = new
    return np.asarray(held)


def _cheapest(
    scores: Floats, shifts: Floats, held: Whole, excess: Floats
) -> list[tuple[int, int, int]] | None:
    """The cheapest chain of moves from a class with too many to one with too few.

    It also lowers the shifts so that every example still has its best class (Dijkstra's distances
    are the changes of price).
    """
    count, near = len(shifts), 1e-9 * max(1.0, float(np.abs(excess).max()))
    full, short = excess > near, excess < -near
    if not full.any() or not short.any():
        return None
    price, whom = _prices(scores, shifts, held)
    distance = np.where(full, 0.0, np.inf)
    before = np.full(count, -1)
    open_ = np.ones(count, bool)
    while True:
        at = int(np.argmin(np.where(open_, distance, np.inf)))
        if not open_[at] or not np.isfinite(distance[at]):
            return None
        open_[at] = False
        if short[at]:
            break
        through = distance[at] + price[at]
        better = open_ & (through < distance)
        distance[better], before[better] = through[better], at
    shifts -= np.minimum(distance, distance[at])
    path = []
    while before[at] >= 0:
        path.append((int(whom[before[at], at]), int(before[at]), at))
        at = int(before[at])
    return path


def _prices(scores: Floats, shifts: Floats, held: Whole) -> tuple[Floats, Whole]:
    """What the cheapest move from one class to another costs, and whose it is, ``[K, K]``."""
    shifted = scores - shifts
    loss = shifted[np.arange(len(held)), held][:, None] - shifted
    price = np.full((len(shifts), len(shifts)), np.inf)
    whom = np.zeros(price.shape, np.int64)
    for i in range(len(shifts)):
        rows = np.flatnonzero(held == i)
        if len(rows):
            first = np.argmin(loss[rows], axis=0)
            whom[i] = rows[first]
            price[i] = np.maximum(loss[whom[i], np.arange(len(shifts))], 0.0)
    np.fill_diagonal(price, np.inf)
    return price, whom
