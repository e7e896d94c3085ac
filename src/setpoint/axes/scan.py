"""The scan over sorted scores: of all ways to cut them, the best one for every threshold.

The value of a rate at every cut is one line of algebra on running sums. The scan is written on what
numpy and torch have in common and without a branch on data, so that evaluation and training choose
by the same rule. Two shorter ways find the same cuts: bisection for one setpoint
(:attr:`Hold.sorts`), and one look at the kept cuts for one bound on one output
(:attr:`Hold.stretches`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from setpoint.axes.arrays import bisect, like, no_nan, take
from setpoint.axes.arrays import quiet as quiet
from setpoint.axes.cuts import AnyCuts, Cuts
from setpoint.axes.specification import Specification
from setpoint.rates import Array, Bound, Combination, Expression, Quotient, Rate, Setpoint

TOLERANCE = 1e-9
"""Rates closer than this come from the same count: 0.29 of 100 examples is 29 of them."""
CUTS_AT_ONCE = 2**22
"""Cuts scanned at once; more thresholds are taken in parts, to bound the memory."""


@dataclass(frozen=True)
class Hold:
    """One target for each threshold: ``expression sense level``.

    Attributes:
        expression: What is bounded or held.
        sense: ``"<="``, ``">="`` or ``"at"``.
        caps: See :attr:`setpoint.rates.Bound.caps`.
        levels: One for each threshold.
        tolerance: Values closer than this are equal.
        direction: What accepting more examples does: 1 raises, -1 lowers the value.
        sorts: Whether bisection finds the best cut of a setpoint.
        stretches: Whether the cuts that keep the bound reach from one end to some cut.
    """

    expression: Expression
    sense: str
    caps: bool | None
    levels: tuple[float, ...]
    tolerance: float = TOLERANCE
    direction: int = 1
    sorts: bool = False
    stretches: bool = False

    def gap(self, value: Array, levels: Array) -> Array:
        """By how much ``value`` misses the target; positive if it does."""
        excess = value - levels
        return abs(excess) if self.sense == "at" else excess if self.sense == "<=" else -excess


@dataclass(frozen=True)
class Placement:
    """Thresholds and the cuts they make. All ``[c, m]``."""

    cut: Array  # how many scores are accepted
    threshold: Array  # what is reported, and what ``score > threshold`` decides by
    marginal: Array  # the score that training puts the threshold on
    holding: list[Array]  # which target the threshold is held by, at most one; else the coverage
    violation: Array  # by how much the targets are missed


def holds(problem: Specification) -> list[Hold]:
    """What the thresholds of ``problem`` have to hold, all thresholds of a range together."""
    held = []
    for i, target in enumerate(problem.points[0]):
        levels = tuple(targets[i].level for targets in problem.points)
        hold, alone = hold_of(target), len(problem.points[0]) == 1
        sorts = hold.sense == "at" and alone and _sorts(problem, target.expression)
        single = alone and len(levels) == 1 and isinstance(target.expression, Rate)
        stretches = single and hold.sense != "at" and hold.caps is not None
        held.append(replace(hold, levels=levels, sorts=sorts, stretches=stretches))
    return held


def hold_of(target: Bound | Setpoint) -> Hold:
    """A target of one threshold, as the scan reads it."""
    sense = target.sense if isinstance(target, Bound) else "at"
    e = target.expression
    return Hold(e, sense, target.caps, (target.level,), tolerance(e), e.direction or 1)


def tolerance(expression: Expression) -> float:
    """How close two values of an expression are if they come from the same counts."""
    size = TOLERANCE * expression.scale
    return size if 0 < size < float("inf") else TOLERANCE


def place(cuts: AnyCuts, problem: Specification, targets: list[Hold] | None = None) -> Placement:
    """The best cut for every threshold, and the thresholds that make it.

    ``targets`` are those of :func:`holds`, for callers that place many times.
    """
    targets = holds(problem) if targets is None else targets
    with quiet(cuts.xp):
        return _place(cuts, problem, targets)


def _place(cuts: AnyCuts, problem: Specification, targets: list[Hold]) -> Placement:
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
        found = _place_one_bound(cuts, targets[0], values[0][0, 0], cost[0, 0], slack)
        if found is not None:
            return found
    valid = cuts.valid()
    count = len(targets[0].levels) if targets else 1
    size = max(1, CUTS_AT_ONCE // (cost.shape[0] * cost.shape[-1]))
    picked = [
        _pick(cuts, targets, values, cost, slack, valid, slice(i, i + size))
        for i in range(0, count, size)
    ]
    cut, violation = (xp.concatenate(list(part), -1) for part in zip(*picked, strict=True))
    return placement_at(cuts, targets, cut, violation)


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


def placement_at(cuts: AnyCuts, targets: list[Hold], cut: Array, violation: Array) -> Placement:
    """The thresholds that make ``cut``, each held by the first target that keeps it there."""
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
    return _placement(cuts, cut, rejects, holding, violation)


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
    """For a setpoint: whether its rate changes on either side, and whether on the rejected one."""
    return shrinks | grows, grows if hold.caps else grows & ~shrinks


def _placement(
    cuts: AnyCuts, cut: Array, rejects: Array, holding: list[Array], violation: Array
) -> Placement:
    """The thresholds that make ``cut``: on the next score it rejects, or between two scores."""
    xp = cuts.xp
    accepted, rejected = cuts.score(cut - 1), cuts.score(cut)
    middle = accepted / 2 + rejected / 2
    middle = xp.where(middle < accepted, middle, rejected)  # adjacent floats have no middle
    threshold = xp.where(rejects | (cut == 0), rejected, middle)
    threshold = xp.where(cut >= cuts.present[:, None], -float("inf"), threshold)
    return Placement(cut, threshold, xp.where(rejects, rejected, accepted), holding, violation)


def _sorts(problem: Specification, held: Expression) -> bool:
    """Whether one of two cuts is the best, so that a setpoint needs no scan of all cuts.

    The held rate must go one way along the sorted scores. Then the cuts at the attainable rate
    nearest to the level follow each other: a single one if every example moves the rate, else a
    stretch along which only the other class comes in, and an objective that moves evenly with it
    is best at one end of the stretch.
    """
    if not isinstance(held, Rate) or not held.direction or held.where:
        return False
    tp, fp, fn, tn = held.numerator.slopes
    by_positives, by_negatives = tp - fn, fp - tn
    return by_positives == by_negatives or (
        0 in (by_positives, by_negatives) and _moves_evenly(problem.objective)
    )


def _moves_evenly(objective: Expression) -> bool:
    """Whether the value keeps rising, keeps falling or stays, as one class comes in."""
    if any(rate.where for rate in objective.rates()):
        return False
    if isinstance(objective, Rate):
        weights = objective.denominator.weights  # without a change of sign: no pole
        return objective.is_steady or min(weights) >= 0 or max(weights) <= 0
    if isinstance(objective, Quotient):
        return objective.bottom.direction == 0 and _moves_evenly(objective.top)
    return isinstance(objective, Combination) and all(
        isinstance(term, Rate) and term.is_steady for term in objective.children
    )


def _place_sorted(cuts: Cuts, hold: Hold, value: Array, cost: Array, slack: float) -> Placement:
    """The placement for one setpoint, by bisection: see :attr:`Hold.sorts`.

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
    return _placement(cuts, cut, rejects, [held], abs(nearest - levels))


def _plain(cuts: AnyCuts) -> TypeGuard[Cuts]:
    """Whether this is one output in numpy, where a branch on data costs nothing."""
    return type(cuts) is Cuts and cuts.xp is np and len(cuts.scores) == 1


_Ends = tuple[int, int, float]


def _place_one_bound(
    cuts: Cuts, hold: Hold, value: Array, cost: Array, slack: float
) -> Placement | None:
    """The placement for one bound on a rate that goes one way along the sorted scores.

    The cuts that keep such a bound reach from one end to some cut, which bisection finds; the best
    of them is one look at their costs. For one output in numpy this takes a sixth of the general
    scan, and it is what people train most.

    Args:
        cuts: The sorted scores of one output.
        hold: The bound.
        value: What it bounds at every cut, ``[n + 1]``.
        cost: The objective to be minimized at every cut, ``[n + 1]``.
        slack: Costs closer than this are equal.

    Returns:
        None if there are no examples or the rate is 0/0: the general scan handles these.
    """
    here = int(cuts.present[0])
    if not here or value[0] != value[0]:
        return None
    first, last, violation = _kept_cuts(hold, value)
    part, scores = cost[first : last + 1], cuts.scores[0]
    apart = np.ones(len(part), bool)  # equal scores are never split
    inner = slice(max(first, 1), min(last, len(scores) - 1) + 1)
    apart[inner.start - first : inner.stop - first] = _distinct(scores, inner)
    lowest = part[apart].min()
    cut = first + int((apart & (part <= lowest + slack)).nonzero()[0][-1])
    return _one_placement(cuts, hold, value, min(cut, here), violation)


def _kept_cuts(hold: Hold, value: Array) -> _Ends:
    """The first and last cut that miss the bound least, and by how much that is."""
    direction, close = hold.direction, hold.tolerance
    rising, level = (value, hold.levels[0]) if direction > 0 else (-value, -hold.levels[0])
    end = len(rising) - 1
    missed = float(rising[0] - level if hold.caps else level - rising[end])
    missed = missed if missed > close else 0.0
    if hold.caps:
        return 0, max(0, int(rising.searchsorted(level + missed + close, "right")) - 1), missed
    return min(end, int(rising.searchsorted(level - missed - close))), end, missed


def _distinct(scores: Array, inner: slice) -> Array:
    """Whether these cuts, neither the first nor the last of all, split no equal scores."""
    return scores[inner.start - 1 : inner.stop - 1] > scores[inner]


def _one_placement(cuts: Cuts, hold: Hold, value: Array, cut: int, violation: float) -> Placement:
    """The threshold that makes ``cut``, and whether the bound keeps it there."""
    scores, here = cuts.scores[0], int(cuts.present[0])
    accepted, rejected = float(scores[max(cut - 1, 0)]), float(scores[min(cut, here - 1)])
    beyond = cut
    if hold.caps and cut < here:
        beyond = int(cuts.rising[0].searchsorted(-rejected, "right"))
    elif not hold.caps and cut:
        beyond = int(cuts.rising[0].searchsorted(-accepted))
    now, there = (float(hold.gap(value[k], hold.levels[0])) for k in (cut, beyond))
    holds = now <= hold.tolerance < there
    rejects = holds and bool(hold.caps)
    middle = accepted / 2 + rejected / 2
    middle = middle if middle < accepted else rejected  # adjacent floats have no middle
    at = -float("inf") if cut >= here else rejected if rejects or not cut else middle
    numbers = (cut, at, rejected if rejects else accepted, violation, holds)
    cuts_, threshold, marginal, missed, holding = (np.array([[x]]) for x in numbers)
    return Placement(cuts_, threshold, marginal, [holding], missed)
