"""Bounds between groups as windows: rates of all groups that must lie close together.

``max(r on a, r on b) - min(r on a, r on b) <= width`` says that the rates of all groups lie in one
window: whatever the smallest is, the largest is at most ``factor * smallest + width``. Given the
smallest, every group is free to choose inside the window.

So the best cuts are found by a scan over the smallest rate. Sort every group's cuts by the rate;
for each level, the cuts that a group may choose from are one range of its sorted cuts, and the best
of a range comes from minima over powers of two: O(G n log n) for G groups with n cuts in all, exact
for costs that add up over groups and for the largest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints
from setpoint.axes.scan import TOLERANCE
from setpoint.rates import (
    Array,
    Bound,
    Combination,
    Expression,
    Fold,
    Quotient,
    Range,
    Setpoint,
    Target,
    Where,
    larger,
)


@dataclass(frozen=True)
class Window:
    """Expressions, one per group, whose values must lie close together."""

    target: Bound | Setpoint
    parts: tuple[Expression, ...]
    width: float
    factor: float = 1.0
    may_be_zero: bool = True
    """Whether all rates may be zero: for a ratio that would be 0/0."""
    least: float = 0.0
    """How far apart rates may be in any case: what one example changes, on a small sample."""

    def upper(self, level: Array) -> Array:
        """The largest value allowed when the smallest is ``level``, for numbers and arrays."""
        return larger(self.factor * level + self.width, level + self.least)

    @property
    def is_exact(self) -> bool:
        """Whether it leaves no room at all."""
        return self.width <= 0 and self.factor <= 1


def slice_of(expression: Expression) -> Where | None:
    """The one slice that all rates of an expression live on, or None."""
    wheres = {rate.where for rate in expression.rates()}
    return wheres.pop() if len(wheres) == 1 else None


def window_of(target: Target) -> Window | None:
    """The window a target asks for, if it has that form and each rate is on a single slice."""
    found = None
    if isinstance(target, Setpoint):
        found = _difference(target, target.expression, 0.0) if target.level == 0 else None
    elif isinstance(target, Bound) and target.sense == "<=":
        found = _at_most(target, target.expression, target.level)
    elif isinstance(target, Bound):
        found = _at_least(target, target.expression, target.level)
    return found if found and all(slice_of(part) is not None for part in found.parts) else None


def split_targets(targets: tuple[Target, ...]) -> list[Bound | Setpoint]:
    """The targets with ``max(...) <= level`` and ``min(...) >= level`` taken apart."""
    found: list[Bound | Setpoint] = []
    for target in targets:
        assert not isinstance(target, Range)
        e = target.expression
        parts = e.parts if isinstance(e, Fold) and isinstance(target, Bound) else ()
        if isinstance(target, Bound) and parts and _all_of(e, target.sense):
            found += split_targets(tuple(Bound(part, target.sense, target.level) for part in parts))
        else:
            found.append(target)
    return found


def _all_of(e: Expression, sense: str) -> bool:
    """Whether a bound on a fold is the same bound on each of its parts."""
    return _is_fold(e, "max" if sense == "<=" else "min")


def _at_most(target: Bound, e: Expression, level: float) -> Window | None:
    if isinstance(e, Fold) and e.kind == "abs":
        return _difference(target, e.parts[0], level)
    if not isinstance(e, Combination) or e.constant or len(e.terms) != 2:
        return None
    (a, top), (b, low) = sorted(e.terms, key=lambda term: -term[0])
    if not (_is_fold(top, "max") and _is_fold(low, "min") and _same_parts(top, low) and a > 0 > b):
        return None
    return Window(target, top.children, level / a, -b / a)


def _at_least(target: Bound, e: Expression, level: float) -> Window | None:
    if isinstance(e, Quotient) and level > 0 and e.bottom.is_share:
        low, top, factor, may_be_zero = e.top, e.bottom, 1 / level, False
    elif isinstance(e, Combination) and len(e.terms) == 2 and level == 0 == e.constant:
        (a, low), (b, top) = sorted(e.terms, key=lambda term: -term[0])
        if not a > 0 > b:
            return None
        factor, may_be_zero = -a / b, True
    else:
        return None
    if not (_is_fold(low, "min") and _is_fold(top, "max") and _same_parts(top, low)):
        return None
    return Window(target, top.children, 0.0, factor, may_be_zero)


def _difference(target: Bound | Setpoint, e: Expression, level: float) -> Window | None:
    """``a - b``, up to ``level`` either way."""
    if not isinstance(e, Combination) or e.constant or len(e.terms) != 2:
        return None
    (a, first), (b, second) = e.terms
    return Window(target, (first, second), level / abs(a)) if a == -b else None


def _is_fold(e: Expression, kind: str) -> bool:
    return isinstance(e, Fold) and e.kind == kind


def _same_parts(a: Expression, b: Expression) -> bool:
    return set(a.children) == set(b.children)


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
    if not window.may_be_zero and levels[-1] > 0:
        levels = levels[levels > 0]
    room = np.maximum(window.upper(levels), levels + _least_excess(levels, rows, window))
    found = [_inside(rate, levels, room) for rate, _, _ in rows]
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


def _inside(rate: Floats, levels: Floats, room: Floats) -> tuple[Ints, Ints]:
    """For each level, the first cut inside the window and the first one beyond."""
    start = np.searchsorted(rate, levels - TOLERANCE, "left")
    return start, np.searchsorted(rate, room + TOLERANCE, "right")


def _minima(values: Floats, start: Ints, end: Ints) -> Floats:
    """The smallest of ``values[start:end]`` for many ranges; infinity for empty ones."""
    length, found = end - start, np.full(len(start), np.inf)
    table, width = values, 1
    while width <= len(values):
        mine = np.flatnonzero((length >= width) & (length < 2 * width))
        found[mine] = np.minimum(table[start[mine]], table[end[mine] - width])
        table = np.minimum(table[:-width], table[width:]) if width < len(table) else table[:0]
        width *= 2
    return found
