"""The scan over sorted scores: of all ways to cut them, the best one.

A rate's value at every cut is one line of algebra on running sums. It is written on what numpy and
torch have in common and without a branch on data: evaluation and training choose by the same rule.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from setpoint.problems.anycuts import AnyCuts
from setpoint.problems.cuts import Cuts as Cuts
from setpoint.problems.cuts import bisect, like, no_nan, take
from setpoint.problems.cuts import quiet as quiet
from setpoint.problems.holds import TOLERANCE as TOLERANCE
from setpoint.problems.holds import Hold as Hold
from setpoint.problems.holds import holds as holds
from setpoint.problems.holds import tolerance
from setpoint.problems.placement import Placement as Placement
from setpoint.problems.placement import seat
from setpoint.problems.problem import Problem
from setpoint.problems.stretch import place_in_stretch
from setpoint.rates import Array

CHUNK = 2**22
"""Cuts scanned at once; more thresholds than fit are taken in turns, to bound the memory."""


def place(cuts: AnyCuts, problem: Problem, targets: list[Hold] | None = None) -> Placement:
    """The best cut for every threshold, and the thresholds that make it.

    ``targets`` are those of :func:`holds`, for callers who place many times.
    """
    targets = holds(problem) if targets is None else targets
    with quiet(cuts.xp):
        return _place(cuts, problem, targets)


def _place(cuts: AnyCuts, problem: Problem, targets: list[Hold]) -> Placement:
    xp = cuts.xp
    tables, slack = cuts.tables(), tolerance(problem.objective)
    cost = problem.objective.of(tables)
    cost = no_nan(xp, -cost if problem.maximize else cost)
    if tuple(cost.shape) != cuts.shape:  # the same at every cut
        cost = xp.broadcast_to(cost, cuts.shape)
    values = [hold.expression.of(tables) for hold in targets]
    if len(targets) == 1 and targets[0].sorts and isinstance(cuts, Cuts):
        return _place_sorted(cuts, targets[0], values[0][:, 0], cost[:, 0], slack)
    if len(targets) == 1 and targets[0].stretches and _plain(cuts):
        found = place_in_stretch(cuts, targets[0], values[0][0, 0], cost[0, 0], slack)
        if found is not None:
            return found
    valid = cuts.valid()
    count = len(targets[0].levels) if targets else 1
    size = max(1, CHUNK // (cost.shape[0] * cost.shape[-1]))
    picked = [
        _pick(cuts, targets, values, cost, slack, valid, slice(i, i + size))
        for i in range(0, count, size)
    ]
    cut, violation = (xp.concatenate(list(part), -1) for part in zip(*picked, strict=True))
    return sit(cuts, targets, cut, violation)


def _plain(cuts: AnyCuts) -> TypeGuard[Cuts]:
    """Whether this is one output in numpy: where a branch on data is no trouble."""
    return type(cuts) is Cuts and cuts.xp is np and len(cuts.scores) == 1


def _place_sorted(cuts: Cuts, hold: Hold, value: Array, cost: Array, slack: float) -> Placement:
    """The same placement for one setpoint, by bisection: see :attr:`Hold.sorts`.

    The two valid cuts around a level are the ends of the block of equal scores that crosses it.
    """
    xp, direction, close = cuts.xp, hold.direction, hold.tolerance
    value = no_nan(xp, direction * value)  # rises
    levels = direction * cuts.for_each(hold.levels)
    crossing = cuts.score(bisect(xp, value, levels) - 1)
    below = take(xp, value, cuts.above(crossing))
    above = take(xp, value, cuts.above(crossing, equal=True))
    nearest = xp.where(levels - below <= above - levels + close, below, above)
    first, after = bisect(xp, value, nearest - close), bisect(xp, value, nearest + close)
    inside = after < value.shape[-1]
    start = cuts.above(cuts.score(first - 1), equal=True) * (first > 0)
    end = xp.where(inside, cuts.above(cuts.score(after - 1)), cuts.present[:, None])
    late = take(xp, cost, end) <= take(xp, cost, start) + slack
    cut = xp.where(late, end, start)
    shrinks, grows = (cut == start) & (first > 0), (cut == end) & inside
    held, rejects = _sides(hold, shrinks, grows)
    return seat(cuts, cut, rejects, [held], abs(nearest - levels))


def _pick(
    cuts: AnyCuts,
    targets: list[Hold],
    values: list[Array],
    cost: Array,
    slack: float,
    valid: Array,
    part: slice,
) -> tuple[Array, Array]:
    """The best cut: least violation, then fewest accepted (setpoints), cost, lowest score."""
    xp, position = cuts.xp, cuts.positions()
    best, least = admissible(cuts, targets, values, valid, xp.zeros_like(cost), part)
    lowest = cuts.along(cuts.over("amin", xp.where(best, cost, float("inf"))))
    cut = cuts.over("amax", xp.where(best & (cost <= lowest + slack), position, 0))
    return cut, least


def admissible(
    cuts: AnyCuts,
    targets: list[Hold],
    values: list[Array],
    valid: Array,
    zero: Array,
    part: slice = slice(None),
) -> tuple[Array, Array]:
    """The cuts that miss their targets least, and by how much that is; ``zero`` at every cut."""
    xp, position = cuts.xp, cuts.positions()
    violation = xp.where(valid, zero, float("inf"))
    for hold, value in zip(targets, values, strict=True):
        gap = no_nan(xp, hold.gap(value, like(value, hold.levels[part])[:, None]))
        violation = violation + xp.where(gap > hold.tolerance, gap, 0.0)
    least = cuts.over("amin", violation)
    close = min([hold.tolerance for hold in targets] or [0.0])
    best = valid & (violation <= cuts.along(least) + close)
    for hold, value in zip(targets, values, strict=True):
        if hold.sense == "at":  # two rates may be equally near: keep the one that accepts fewer
            first = cuts.along(cuts.over("amin", xp.where(best, position, len(position))))
            level = cuts.over("amin", xp.where(position == first, value, float("inf")))
            best = best & (abs(value - cuts.along(level)) <= hold.tolerance)
    return best, least


def sit(cuts: AnyCuts, targets: list[Hold], cut: Array, violation: Array) -> Placement:
    """Choose the target each threshold is held by: the first that keeps it from moving."""
    xp, here = cuts.xp, cuts.present[:, None]
    cut = xp.minimum(cut, here)
    shorter = cuts.above(cuts.score(cut - 1)) * (cut > 0)
    longer = xp.where(cut < here, cuts.above(cuts.score(cut), equal=True), cut)
    tables = [cuts.tables_at(k) for k in (cut, shorter, longer)]
    free, rejects = cut == cut, cut != cut
    holding = []
    for hold in targets:
        values = [hold.expression.of(table) for table in tables]
        held, grows = _stops(hold, like(violation, hold.levels), *values)
        holding.append(held & free)
        rejects = rejects | (held & free & grows)
        free = free & ~held
    return seat(cuts, cut, rejects, holding, violation)


def _stops(hold: Hold, levels: Array, now: Array, less: Array, more: Array) -> tuple[Array, Array]:
    """Whether a target keeps the cut from moving, and whether by what it rejects."""
    if hold.caps is None:
        return now != now, now != now
    close = hold.tolerance
    if hold.sense == "at":
        return _sides(hold, abs(less - now) > close, abs(more - now) > close)
    kept = hold.gap(now, levels) <= close
    stops = kept & (hold.gap(more if hold.caps else less, levels) > close)
    return stops, stops if hold.caps else stops & ~stops


def _sides(hold: Hold, shrinks: Array, grows: Array) -> tuple[Array, Array]:
    """For a setpoint: it holds if its rate changes on either side; sit where it does."""
    return shrinks | grows, grows if hold.caps else grows & ~shrinks
