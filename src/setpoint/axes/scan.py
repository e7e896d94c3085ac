"""The scan over sorted scores: of all ways to cut them, the best one for every threshold.

The value of a rate at every cut is one line of algebra on running sums. Two shorter ways find the
same cuts: bisection for one setpoint (:attr:`Hold.sorts`), and no sort at all where a threshold is
an order statistic (:mod:`setpoint.axes.order_statistics`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from setpoint.axes.arrays import no_nan, quiet
from setpoint.axes.cuts import Cuts, bisect, take
from setpoint.axes.query_data import AnyCuts
from setpoint.axes.specification import Specification
from setpoint.rates import Array, Bound, Combination, Expression, Quotient, Rate, Setpoint, Tables

TOLERANCE = 1e-9
"""Rates closer than this come from the same count: 0.29 of 100 examples is 29 of them."""
CUTS_AT_ONCE = 2**22
"""Cuts scanned at once; more thresholds are taken in parts, to bound the memory."""


@dataclass(frozen=True)
class Counted:
    """A rate that counts accepted (or rejected) examples of some classes, each by one weight.

    Attributes:
        classes: The columns of a sample: 0 for positives, 1 for negatives.
        weight: What an example counts.
        below: The denominator: the weights of positives, of negatives, and a constant.
    """

    classes: tuple[int, ...]
    weight: float
    below: tuple[float, float, float]


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
        counted: The classes whose order statistic is the threshold; None if a scan has to find it.
    """

    expression: Expression
    sense: str
    caps: bool | None
    levels: tuple[float, ...]
    tolerance: float = TOLERANCE
    direction: int = 1
    sorts: bool = False
    counted: Counted | None = None

    def gap(self, value: Array, levels: Array) -> Array:
        """By how much ``value`` misses the target; positive if it does."""
        excess = value - levels
        return abs(excess) if self.sense == "at" else excess if self.sense == "<=" else -excess


@dataclass(frozen=True)
class Placement:
    """Thresholds and the cuts they make. All ``[c, m]``."""

    threshold: Array  # what is reported, and what ``score > threshold`` decides by
    marginal: Array  # the score that training puts the threshold on
    holding: list[Array]  # which target the threshold is held by, at most one; else the coverage
    cut: Array = None  # how many scores are accepted, if a scan has counted them
    violation: Array = None  # by how much the targets are missed, if a scan has measured it


def holds(problem: Specification) -> list[Hold]:
    """What the thresholds of ``problem`` have to hold, all thresholds of a range together."""
    held = []
    for i, target in enumerate(problem.points[0]):
        levels = tuple(targets[i].level for targets in problem.points)
        hold, alone = hold_of(target), len(problem.points[0]) == 1
        sorts = hold.sense == "at" and alone and _sorts(problem, target.expression)
        counted = _counted_classes(problem, hold) if alone else None
        held.append(replace(hold, levels=levels, sorts=sorts, counted=counted))
    return held


def hold_of(target: Bound | Setpoint) -> Hold:
    """A target of one threshold, as the scan reads it."""
    sense = target.sense if isinstance(target, Bound) else "at"
    e = target.expression
    return Hold(e, sense, target.caps, (target.level,), tolerance(e), e.direction or 1)


def tolerance(expression: Expression) -> float:
    """How close two values of an expression are if they come from the same counts."""
    size = TOLERANCE * expression.scale
    return size if 0 < size < np.inf else TOLERANCE


def cost_of(problem: Specification, tables: Tables) -> Array:
    """The objective, to be minimized; 0/0 is the worst there is."""
    value = problem.objective.of(tables)
    return no_nan(-value if problem.maximize else value)


def violation(targets: Iterable[Hold], tables: Tables) -> Array:
    """By how much targets of one level are missed together; within tolerance counts as met."""
    total: Array = 0.0
    for hold in targets:
        gap = no_nan(hold.gap(hold.expression.of(tables), hold.levels[0]))
        total = total + np.where(gap > hold.tolerance, gap, 0.0)
    return total


class Worth(NamedTuple):
    """How good a choice is: by how much its targets are missed, then what it costs."""

    missed: float
    cost: float

    @classmethod
    def of(cls, problem: Specification, targets: Iterable[Hold], tables: Tables) -> Worth:
        """The worth of a choice that gives these counts."""
        found = violation(targets, tables), cost_of(problem, tables)
        return cls(*(float(np.max(value)) for value in found))

    def beats(self, other: Worth, close: float, slack: float) -> bool:
        """Whether less is missed, or the cost is lower at misses that are ``close``."""
        if abs(self.missed - other.missed) > close:
            return self.missed < other.missed
        return self.cost < other.cost - slack


def place(cuts: AnyCuts, problem: Specification, targets: list[Hold] | None = None) -> Placement:
    """The best cut for every threshold, and the thresholds that make it.

    ``targets`` are those of :func:`holds`, for callers that place many times.
    """
    targets = holds(problem) if targets is None else targets
    with quiet():
        return _place(cuts, problem, targets)


def _place(cuts: AnyCuts, problem: Specification, targets: list[Hold]) -> Placement:
    tables, slack = cuts.tables(), tolerance(problem.objective)
    cost = cost_of(problem, tables)
    if tuple(cost.shape) != cuts.shape:  # the same at every cut
        cost = np.broadcast_to(cost, cuts.shape)
    values = [hold.expression.of(tables) for hold in targets]
    if len(targets) == 1 and targets[0].sorts and isinstance(cuts, Cuts):
        return _place_sorted(cuts, targets[0], values[0][:, 0], cost[:, 0], slack)
    valid = cuts.valid()
    count = len(targets[0].levels) if targets else 1
    size = max(1, CUTS_AT_ONCE // (cost.shape[0] * cost.shape[-1]))
    picked = [
        _pick(cuts, targets, values, cost, slack, valid, slice(i, i + size))
        for i in range(0, count, size)
    ]
    cut, violation = (np.concatenate(list(part), -1) for part in zip(*picked, strict=True))
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
    position = cuts.positions()
    best, least = admissible(cuts, targets, values, valid, np.zeros_like(cost), part)
    lowest = cuts.along(cuts.over(np.minimum, np.where(best, cost, np.inf)))
    cut = cuts.over(np.maximum, np.where(best & (cost <= lowest + slack), position, 0))
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
    gaps = [
        hold.gap(value, np.array(hold.levels[part])[:, None])
        for hold, value in zip(targets, values, strict=True)
    ]
    if not any(hold.sense == "at" for hold in targets):
        kept = valid & (zero == 0)
        for hold, gap in zip(targets, gaps, strict=True):
            kept = kept & (gap <= hold.tolerance)
        some = cuts.over(np.logical_or, kept)
        if some.all():  # the usual case: every threshold can keep its bounds
            return kept, 0.0 * some
    position = cuts.positions()
    violation = np.where(valid, zero, np.inf)
    for hold, gap in zip(targets, gaps, strict=True):
        gap = no_nan(gap)
        violation = violation + np.where(gap > hold.tolerance, gap, 0.0)
    least = cuts.over(np.minimum, violation)
    close = min([hold.tolerance for hold in targets] or [0.0])
    best = valid & (violation <= cuts.along(least) + close)
    for hold, value in zip(targets, values, strict=True):
        if hold.sense == "at":  # two rates may be equally near: keep the one that accepts fewer
            first = cuts.along(cuts.over(np.minimum, np.where(best, position, len(position))))
            level = cuts.over(np.minimum, np.where(position == first, value, np.inf))
            best = best & (abs(value - cuts.along(level)) <= hold.tolerance)
    return best, least


def placement_at(cuts: AnyCuts, targets: list[Hold], cut: Array, violation: Array) -> Placement:
    """The thresholds that make ``cut``, each held by the first target that keeps it there."""
    here = cuts.present[:, None]
    cut = np.minimum(cut, here)
    shorter = cuts.above(cuts.score(cut - 1)) * (cut > 0)
    longer = np.where(cut < here, cuts.above(cuts.score(cut), equal=True), cut)
    tables = [cuts.tables_at(k) for k in (cut, shorter, longer)]
    free, rejects = cut == cut, cut != cut
    holding = []
    for hold in targets:
        values = [np.asarray(hold.expression.of(table)) for table in tables]
        held, grows = _stops(hold, np.array(hold.levels), *values)
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
    accepted, rejected = cuts.score(cut - 1), cuts.score(cut)
    middle = accepted / 2 + rejected / 2
    middle = np.where(middle < accepted, middle, rejected)  # adjacent floats have no middle
    threshold = np.where(rejects | (cut == 0), rejected, middle)
    threshold = np.where(cut >= cuts.present[:, None], -np.inf, threshold)
    marginal = np.where(rejects, rejected, accepted)
    return Placement(threshold, marginal, holding, cut, violation)


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


def _counted_classes(problem: Specification, hold: Hold) -> Counted | None:
    """The classes whose order statistic is the threshold: see :attr:`Hold.counted`.

    If a target caps how many examples of some classes are accepted, each counting the same, and
    accepting more never makes the objective worse, then the threshold is as low as the target
    permits: it sits on the first example that would be one too many. A setpoint on how many of all
    examples are accepted leaves no choice, whatever the objective.
    """
    rate, better = hold.expression, problem.objective.direction
    if not (isinstance(rate, Rate) and hold.caps) or rate.where or rate.classes:
        return None
    sides = rate.numerator.weights[:2], rate.numerator.weights[2:4]
    counted, others = sides if hold.direction > 0 else sides[::-1]
    if any(others) or rate.numerator.one or len({weight for weight in counted if weight}) > 1:
        return None
    never_worse = better is not None and (better >= 0 if problem.maximize else better <= 0)
    if not never_worse and not (hold.sense == "at" and all(counted)):
        return None
    classes, below = tuple(i for i, weight in enumerate(counted) if weight), rate.denominator
    return Counted(classes, max(counted), (below.tp, below.fp, below.one))


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
    direction, close = hold.direction, hold.tolerance
    value = no_nan(direction * value)  # rises
    levels = direction * np.array(hold.levels) + 0 * cuts.present[:, None]
    crossing = cuts.score(bisect(value, levels) - 1)
    below = take(value, cuts.above(crossing))
    above = take(value, cuts.above(crossing, equal=True))
    nearest: Array = np.where(levels - below <= above - levels + close, below, above)
    first, after = bisect(value, nearest - close), bisect(value, nearest + close)
    inside = after < value.shape[-1]
    start = cuts.above(cuts.score(first - 1), equal=True) * (first > 0)
    end = np.where(inside, cuts.above(cuts.score(after - 1)), cuts.present[:, None])
    late = take(cost, end) <= take(cost, start) + slack
    cut = np.where(late, end, start)
    shrinks, grows = (cut == start) & (first > 0), (cut == end) & inside
    held, rejects = _sides(hold, shrinks, grows)
    return _placement(cuts, cut, rejects, [held], abs(nearest - levels))
