"""The scan over a common level: of all cuts of all groups that lie together, the best ones.

Sort every group's cuts by the rate that is compared. For each level that any group can take as the
smallest, the cuts a group may choose from are one stretch of its sorted cuts, and the best of a
stretch comes from minima over powers of two: O(G n log n) for G groups with n cuts in all, exact
for costs that add up over groups and for the largest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.problems.groups.forms import Window
from setpoint.problems.holds import TOLERANCE
from setpoint.problems.inputs import Floats

Ints = NDArray[np.int64]


def best_alone(cost: Floats, slack: float) -> int:
    """The best cut of one group: of equally good ones the one that accepts most."""
    return int(np.flatnonzero(cost <= cost.min() + slack)[-1])


def best_together(
    costs: Sequence[Floats],
    rates: Sequence[Floats],
    window: Window,
    total: Callable[..., Any],
    slack: float,
) -> list[int]:
    """The best cut of every group such that their rates lie in one window.

    Args:
        costs: Of each group, at every cut; infinite where a cut is not allowed.
        rates: What has to lie together, at every cut.
        window: How far apart the rates may be. If no choice fits, the closest ones there are.
        total: Makes one cost of all groups', such as ``np.sum``.
        slack: Costs closer than this are equal.
    """
    rows = [_sorted(cost, rate) for cost, rate in zip(costs, rates, strict=True)]
    if not all(len(cost) for _, cost, _ in rows):
        return [best_alone(cost, slack) for cost in costs]  # some rate is 0/0 at every cut
    levels = np.unique(np.concatenate([rate for rate, _, _ in rows]))
    if not window.of_none and levels[-1] > 0:
        levels = levels[levels > 0]
    room = np.maximum(window.upper(levels), levels + _least_excess(levels, rows, window))
    found = [_stretch(rate, levels, room) for rate, _, _ in rows]
    values = [_minima(cost, *ends) for (_, cost, _), ends in zip(rows, found, strict=True)]
    overall = total(np.stack(values), axis=0)
    best = int(np.flatnonzero(overall <= overall.min() + slack)[-1])
    picks = []
    for (_, cost, cut), (start, end) in zip(rows, found, strict=True):
        part = slice(start[best], end[best])
        close = cost[part] <= cost[part].min() + slack
        picks.append(int(cut[part][close].max()))
    return picks


def _sorted(cost: Floats, rate: Floats) -> tuple[Floats, Floats, Ints]:
    """Rates in rising order with their costs and cuts; what is not allowed is left out."""
    kept = np.flatnonzero(np.isfinite(cost) & ~np.isnan(rate))
    order = kept[np.argsort(rate[kept], kind="stable")]
    return rate[order], cost[order], order


def _least_excess(levels: Floats, rows: Any, window: Window) -> float:
    """By how much the window must at least be wider than a level: 0 if some choice fits it."""
    nearest = np.full_like(levels, -np.inf)
    for rate, _, _ in rows:
        place = np.searchsorted(rate, levels - TOLERANCE)
        inside = np.append(rate, np.inf)[place]
        nearest = np.maximum(nearest, inside)
    fits = nearest <= window.upper(levels) + TOLERANCE
    return 0.0 if fits.any() else float(np.min(nearest - levels))


def _stretch(rate: Floats, levels: Floats, room: Floats) -> tuple[Ints, Ints]:
    """For each level, the first cut inside the window and the first one beyond."""
    start = np.searchsorted(rate, levels - TOLERANCE, "left")
    return start, np.searchsorted(rate, room + TOLERANCE, "right")


def _minima(values: Floats, start: Ints, end: Ints) -> Floats:
    """The smallest of ``values[start:end]`` for many stretches; infinity for empty ones."""
    length, found = end - start, np.full(len(start), np.inf)
    table, width = values, 1
    while width <= len(values):
        mine = np.flatnonzero((length >= width) & (length < 2 * width))
        found[mine] = np.minimum(table[start[mine]], table[end[mine] - width])
        table = np.minimum(table[:-width], table[width:]) if width < len(table) else table[:0]
        width *= 2
    return found
