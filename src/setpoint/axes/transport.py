"""Shifts of classes from how many examples each class is to have: a transport problem.

1. :func:`quotas_of`: how many examples every class gets.
2. :func:`assign`: send every example to a class, so many to each, with the largest sum of scores.
   The prices of the classes in that problem are the shifts: ``argmax(score - shift)`` is the best
   plan. Smoothed by a softmax the dual is convex in K variables, and Newton's method solves it in a
   few steps; single examples are then moved along shortest paths until the counts are exact.
3. :func:`shifts_for`: the shifts that lead to an assignment. An example of class ``i`` asks that
   ``t_i - t_j <= s_i - s_j`` for every other class ``j``. Shifts are reported from the middle of
   what all examples allow, as a threshold is half way between two scores; in training they sit at
   an edge of it, where K - 1 examples are between two classes, so that no slope is zero.
"""

from __future__ import annotations

import numpy as np

from setpoint.axes.arrays import Floats, Ints
from setpoint.axes.class_data import class_spreads

_WIDTHS = (0.25, 0.02)
"""Widths of the softmax in units of the spread: a wide one to start, then a narrow one."""
_NEWTON_STEPS = 30
_ENOUGH = 1e-3
"""Newton stops when no count is off by more than this share of one example."""


def quotas_of(wanted: dict[int, float], truth: Floats, weights: Floats) -> Floats:
    """What each class gets of the whole weight; whole numbers if all weights are 1."""
    total, quotas = float(weights.sum()), truth.astype(float)
    for column, weight in wanted.items():
        quotas[column] = min(weight, total)
    free = [i for i in range(len(quotas)) if i not in wanted]
    left = total - sum(quotas[i] for i in wanted)
    if free:
        own = quotas[free].sum()
        quotas[free] = quotas[free] * left / own if own > 0 else left / len(free)
    return _whole_quotas(quotas, wanted, free) if np.all(weights == 1) else quotas


def _whole_quotas(quotas: Floats, wanted: dict[int, float], free: list[int]) -> Floats:
    """Whole numbers near the quotas that add up to the same.

    A wanted count is rounded to the nearest, half down, as a setpoint is; the others take the rest.
    """
    total = round(float(quotas.sum()))
    counts = np.ceil(quotas - 0.5 - 1e-9)
    for column in wanted:
        counts[column] = min(counts[column], total)
    pool = free or list(wanted)
    while (short := total - int(counts.sum())) != 0:
        gaps = np.array([quotas[i] - counts[i] for i in pool])
        best = pool[
            int(
                np.argmax(gaps)
                if short > 0
                else np.argmin(np.where(counts[pool] > 0, gaps, np.inf))
            )
        ]
        counts[best] += 1 if short > 0 else -1
    return np.maximum(counts, 0.0)


def assign(scores: Floats, quotas: Floats, weights: Floats) -> Ints:
    """The class of each example, ``[n]``, such that class ``i`` has a weight of ``quotas[i]``.

    With weights of 1 and whole quotas that add up to n the counts are exact. Otherwise no single
    move, nor chain of moves, along a shortest path brings them closer.
    """
    used = np.flatnonzero(quotas > 0)
    if len(used) < 2 or not len(scores):
        return np.full(len(scores), used[0] if len(used) else 0)
    few = scores[:, used]
    shifts = _smooth(few, quotas[used], weights)
    return used[correct_counts(few, shifts, quotas[used], weights)]


def _smooth(scores: Floats, quotas: Floats, weights: Floats) -> Floats:
    """The shifts with which a softmax has the right totals."""
    centred = scores - scores.mean(1, keepdims=True)
    spread = float(np.sqrt(((centred - centred.mean(0)) ** 2).mean())) or 1.0
    shifts = np.average(centred, axis=0, weights=weights)
    shares = quotas / quotas.sum() * weights.sum()
    for width in _WIDTHS:
        shifts = _newton(centred, shifts, shares, weights, width * spread)
    return shifts


def _newton(
    scores: Floats, shifts: Floats, quotas: Floats, weights: Floats, width: float
) -> Floats:
    """Minimize ``sum w h log sum exp((s - t) / h) + quotas . t``, which is convex in the shifts."""
    value, p = _dual(scores, shifts, quotas, weights, width)
    for _ in range(_NEWTON_STEPS):
        taken = weights @ p
        slope = quotas - taken
        if np.abs(slope).max() <= _ENOUGH * weights.max():
            break
        hessian = np.diag(taken) - (p * weights[:, None]).T @ p
        hessian += np.eye(len(shifts)) * 1e-12 * taken.max() + taken.mean() / len(shifts)  # gauge
        step = -width * np.linalg.solve(hessian, slope)
        step -= step.mean()
        length, gain = 1.0, float(slope @ step)
        for _ in range(30):
            found, q = _dual(scores, shifts + length * step, quotas, weights, width)
            if found <= value + 1e-4 * length * gain:
                break
            length /= 2
        else:
            break
        shifts, value, p = shifts + length * step, found, q
    return shifts


def _dual(
    scores: Floats, shifts: Floats, quotas: Floats, weights: Floats, width: float
) -> tuple[float, Floats]:
    z = (scores - shifts) / width
    top = z.max(1, keepdims=True)
    powers = np.exp(z - top)
    total = powers.sum(1, keepdims=True)
    value = width * float(weights @ (np.log(total) + top)[:, 0]) + float(quotas @ shifts)
    return value, powers / total


def correct_counts(scores: Floats, shifts: Floats, quotas: Floats, weights: Floats) -> Ints:
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
    scores: Floats, shifts: Floats, held: Ints, excess: Floats
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


def _prices(scores: Floats, shifts: Floats, held: Ints) -> tuple[Floats, Ints]:
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


def shifts_for(scores: Floats, held: Ints) -> tuple[Floats, Floats]:
    """The shifts in the middle and those at the edge, ``[K]`` each, that give every row ``held``.

    Where no shifts can (equal rows in different classes), the middle is as near as can be.
    """
    room = _largest_differences(scores, held)
    slack = _least_mean_cycle(room)
    middle = _farthest(room - slack).mean(1)  # no class is the one to start from
    root = int(np.lexsort((class_spreads(scores), np.bincount(held, minlength=len(room))))[-1])
    edge = _farthest(room - min(slack, 0.0))[:, root]
    return _centred(middle), _centred(edge)


def _largest_differences(scores: Floats, held: Ints) -> Floats:
    """How much ``t_i - t_j`` may be at most, ``[K, K]``: the least ``s_i - s_j`` in class ``i``.

    A class without examples is treated as if it had one more, out of the reach of all others.
    """
    count = scores.shape[1]
    room = np.empty((count, count))
    reach = max(float(np.ptp(scores[:, [i]] - scores, axis=0).max()) for i in range(count)) or 1.0
    for i in range(count):
        own = scores[held == i]
        if len(own):
            room[i] = (own[:, [i]] - own).min(0)
        else:
            room[i] = (scores[:, [i]] - scores).max(0) + 0.1 * reach
    np.fill_diagonal(room, np.inf)
    return room


def _least_mean_cycle(room: Floats) -> float:
    """How much every difference can be from its limit at once: Karp's algorithm (1978)."""
    count = len(room)
    lengths = np.empty((count + 1, count))
    lengths[0] = 0.0
    for k in range(count):
        lengths[k + 1] = (lengths[k] + room).min(1)  # from j to i
    left = count - np.arange(count)[:, None]
    return float(((lengths[count] - lengths[:count]) / left).max(0).min())


def _farthest(room: Floats) -> Floats:
    """For each start ``j`` the largest shifts with ``t_j = 0``, ``[i, j]``: Floyd and Warshall."""
    paths = room.copy()
    np.fill_diagonal(paths, 0.0)
    for k in range(len(paths)):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k]])
    return np.asarray(paths)


def _centred(shifts: Floats) -> Floats:
    return np.asarray(shifts - shifts.mean())
