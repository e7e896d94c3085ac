"""The scan over sorted scores: every way to cut them, and the best one.

Sort the scores from high to low. Cut ``k`` accepts the ``k`` highest, so running sums give the
counts at all ``n + 1`` cuts at once, and a rate's value at every cut is one line of algebra. Equal
scores are never split. It is written once on what numpy and torch have in common (``xp`` is either
module) and without a branch on data: evaluation and training choose by the same rule.

Shapes: ``c`` outputs, ``m`` thresholds of each, ``n`` scores: cuts are ``[c, m, n + 1]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.problems.problem import Problem
from setpoint.rates import Array, Bound, Counts, Expression, Rate, Tables, Where

TOLERANCE = 1e-9
"""Rates closer than this are the same count: 0.29 of 100 is 29, whatever floats make of it."""
CHUNK = 2**22
"""Cuts scanned at once; more thresholds than fit are taken in turns, to bound the memory."""


@dataclass(frozen=True)
class Hold:
    """One target for each threshold: ``expression sense level``, the levels as ``[m]``."""

    expression: Expression
    sense: str
    caps: bool | None
    levels: tuple[float, ...]

    @property
    def sorts(self) -> bool:
        """Whether bisection finds the setpoint: a rate of one class, of everyone, that rises or falls."""
        e = self.expression
        if self.sense != "at" or not e.direction or not isinstance(e, Rate) or e.where:
            return False
        slopes = e.numerator.slopes
        return (slopes[0] == slopes[2]) != (slopes[1] == slopes[3])

    def gap(self, value: Array, levels: Array) -> Array:
        """By how much ``value`` misses the target; positive if it does."""
        excess = value - levels
        return abs(excess) if self.sense == "at" else excess if self.sense == "<=" else -excess


def holds(problem: Problem) -> list[Hold]:
    """What the thresholds of ``problem`` have to hold, all thresholds of a range together."""
    if problem.swept is not None:
        points = [targets[0] for targets in problem.points]
        first = points[0]
        levels = tuple(point.level for point in points)
        return [Hold(first.expression, "at", first.caps, levels)]
    return [
        Hold(t.expression, t.sense if isinstance(t, Bound) else "at", t.caps, (t.level,))
        for t in problem.points[0]
    ]


@dataclass(frozen=True)
class Cuts:
    """Counts at every cut of the sorted scores."""

    xp: Any
    scores: Array  # [c, n] from high to low; examples of weight zero come last, as -inf
    present: Array  # [c] how many are there
    running: Mapping[Where, tuple[Array, Array]]  # accepted positives and negatives [c, n + 1]

    @classmethod
    def sort(cls, xp: Any, scores: Array, masks: Mapping[Where, tuple[Array, Array]]) -> Cuts:
        """Sort ``scores`` [c, n] and add up the weights of both classes in every slice."""
        everyone = sum(masks[()])
        keys = xp.where(everyone > 0, scores, -float("inf"))
        order = xp.argsort(-keys, -1)
        running = {w: (_sums(xp, p, order), _sums(xp, q, order)) for w, (p, q) in masks.items()}
        return cls(xp, _take(xp, keys, order), xp.sum(everyone > 0, -1), running)

    def tables(self) -> Tables:
        """The counts at all cuts, ``[c, 1, n + 1]``."""
        return {
            w: _counts(tp[:, None], fp[:, None], tp[:, None, -1:], fp[:, None, -1:])
            for w, (tp, fp) in self.running.items()
        }

    def tables_at(self, cut: Array) -> Tables:
        """The counts at one cut for each threshold, ``[c, m]``."""
        xp = self.xp
        return {
            w: _counts(_take(xp, tp, cut), _take(xp, fp, cut), tp[:, -1:], fp[:, -1:])
            for w, (tp, fp) in self.running.items()
        }

    def valid(self) -> Array:
        """Which cuts split no equal scores, ``[c, 1, n + 1]``."""
        xp, s = self.xp, self.scores
        end = s[:, :1] > -float("inf")  # cut 0; true wherever there is anybody
        return xp.concatenate([end, s[:, :-1] > s[:, 1:], end], -1)[:, None]

    def score(self, rank: Array) -> Array:
        """The score of the given rank (0: the highest), clamped to those that are there."""
        rank = self.xp.minimum(rank * (rank > 0), self.present[:, None] - 1)
        return _take(self.xp, self.scores, rank * (rank > 0))

    def above(self, values: Array, *, equal: bool = False) -> Array:
        """How many scores are above ``values`` [c, m] (or equal): always a valid cut."""
        return _bisect(self.xp, self.rising, -values, "right" if equal else "left")

    @cached_property
    def rising(self) -> Array:
        """The scores with their signs turned, so that they rise."""
        return -self.scores


@dataclass(frozen=True)
class Placement:
    """Where the thresholds sit. All ``[c, m]``."""

    cut: Array  # how many scores are accepted
    threshold: Array  # what is reported, and what ``score > threshold`` decides by
    marginal: Array  # the score that training puts the threshold on
    holding: list[Array]  # which target the threshold is held by, at most one; else the coverage
    violation: Array  # by how much the targets are missed


def place(cuts: Cuts, problem: Problem, targets: list[Hold] | None = None) -> Placement:
    """The best cut for every threshold, and the thresholds that make it.

    ``targets`` are those of :func:`holds`, for callers who place many times.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return _place(cuts, problem, holds(problem) if targets is None else targets)


def _place(cuts: Cuts, problem: Problem, targets: list[Hold]) -> Placement:
    tables = cuts.tables()
    cost = problem.objective.of(tables)
    cost = _no_nan(cuts.xp, -cost if problem.maximize else cost)
    values = [hold.expression.of(tables) for hold in targets]
    if len(targets) == 1 and targets[0].sorts:
        return _place_sorted(cuts, targets[0], values[0][:, 0], cost[:, 0])
    valid = cuts.valid()
    count = len(targets[0].levels) if targets else 1
    size = max(1, CHUNK // (cuts.scores.shape[0] * cost.shape[-1]))
    picked = [
        _pick(cuts.xp, targets, values, cost, valid, slice(i, i + size))
        for i in range(0, count, size)
    ]
    cut, violation = (cuts.xp.concatenate(list(part), -1) for part in zip(*picked, strict=True))
    return _sit(cuts, targets, cut, violation)


def _place_sorted(cuts: Cuts, hold: Hold, value: Array, cost: Array) -> Placement:
    """The same placement for one setpoint on a rate of one class, by bisection.

    Along the sorted scores such a rate goes one way, so the two valid cuts around a level are the
    ends of the block of equal scores that crosses it; and among cuts with the same rate only the
    other class changes, which no rate likes better in the middle than at both ends.
    """
    xp, direction = cuts.xp, hold.expression.direction or 1
    value = _no_nan(xp, direction * value)  # rises
    levels = _levels(xp, value, hold.levels)[None] * direction + xp.zeros_like(value[:, :1])
    crossing = cuts.score(_bisect(xp, value, levels) - 1)
    below, above = cuts.above(crossing), cuts.above(crossing, equal=True)
    gaps = [abs(_take(xp, value, cut) - levels) for cut in (below, above)]
    nearest = _take(xp, value, xp.where(gaps[0] <= gaps[1] + TOLERANCE, below, above))
    first = _bisect(xp, value, nearest - TOLERANCE)
    start = cuts.above(cuts.score(first - 1), equal=True) * (first > 0)
    after = _bisect(xp, value, nearest + TOLERANCE)
    inside = after < value.shape[-1]
    end = xp.where(inside, cuts.above(cuts.score(after - 1)), cuts.present[:, None])
    late = _take(xp, cost, end) <= _take(xp, cost, start) + TOLERANCE
    cut = xp.where(late, end, start)
    shrinks, grows = (cut == start) & (first > 0), (cut == end) & inside
    held, rejects = _sides(hold, shrinks, grows)
    return _seat(cuts, cut, rejects, [held], abs(nearest - levels))


def _pick(
    xp: Any, targets: list[Hold], values: list[Array], cost: Array, valid: Array, part: slice
) -> tuple[Array, Array]:
    """The best cut: least violation, then fewest accepted (setpoints), cost, lowest score."""
    violation = xp.where(valid, xp.zeros_like(cost), float("inf"))
    for hold, value in zip(targets, values, strict=True):
        gap = _no_nan(xp, hold.gap(value, _levels(xp, value, hold.levels[part])[:, None]))
        violation = violation + xp.where(gap > TOLERANCE, gap, xp.zeros_like(gap))
    least = xp.amin(violation, -1)[..., None]
    best = valid & (violation <= least + TOLERANCE)
    position = xp.arange(cost.shape[-1], **({"device": cost.device} if xp is not np else {}))
    for hold, value in zip(targets, values, strict=True):
        if hold.sense == "at":  # two rates may be equally near: keep the one that accepts fewer
            first = xp.amin(xp.where(best, position, float("inf")), -1)[..., None]
            level = xp.amin(xp.where(position == first, value, float("inf")), -1)[..., None]
            best = best & (abs(value - level) <= TOLERANCE)
    lowest = xp.amin(xp.where(best, cost, float("inf")), -1)[..., None]
    cut = xp.amax(xp.where(best & (cost <= lowest + TOLERANCE), position, 0.0), -1)
    return _whole(xp, cut), least[..., 0]


def _sit(cuts: Cuts, targets: list[Hold], cut: Array, violation: Array) -> Placement:
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
        held, grows = _stops(hold, _levels(xp, violation, hold.levels), *values)
        holding.append(held & free)
        rejects = rejects | (held & free & grows)
        free = free & ~held
    return _seat(cuts, cut, rejects, holding, violation)


def _stops(hold: Hold, levels: Array, now: Array, less: Array, more: Array) -> tuple[Array, Array]:
    """Whether a target keeps the cut from moving, and whether the threshold sits on what it rejects."""
    if hold.caps is None:
        return now != now, now != now
    if hold.sense == "at":
        return _sides(hold, abs(less - now) > TOLERANCE, abs(more - now) > TOLERANCE)
    kept = hold.gap(now, levels) <= TOLERANCE
    stops = kept & (hold.gap(more if hold.caps else less, levels) > TOLERANCE)
    return stops, stops if hold.caps else stops & ~stops


def _sides(hold: Hold, shrinks: Array, grows: Array) -> tuple[Array, Array]:
    """For a setpoint: it holds if its rate changes on either side; sit where it does."""
    return shrinks | grows, grows if hold.caps else grows & ~shrinks


def _seat(
    cuts: Cuts, cut: Array, rejects: Array, holding: list[Array], violation: Array
) -> Placement:
    """The thresholds that make ``cut``: on the score it rejects next, or below the last accepted."""
    xp = cuts.xp
    accepted, rejected = cuts.score(cut - 1), cuts.score(cut)
    middle = accepted / 2 + rejected / 2
    middle = xp.where(middle < accepted, middle, rejected)  # adjacent floats have no middle
    threshold = xp.where(rejects | (cut == 0), rejected, middle)
    threshold = xp.where(cut >= cuts.present[:, None], -float("inf"), threshold)
    return Placement(cut, threshold, xp.where(rejects, rejected, accepted), holding, violation)


def _sums(xp: Any, weights: Array, order: Array) -> Array:
    sums = xp.cumsum(_take(xp, weights, order), -1)
    return xp.concatenate([xp.zeros_like(sums[:, :1]), sums], -1)


def _counts(tp: Array, fp: Array, positives: Array, negatives: Array) -> Counts:
    return Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)


def _levels(xp: Any, like: Array, levels: tuple[float, ...]) -> Array:
    """The levels as an array of the kind and place of ``like``."""
    return like.new_tensor(levels) if hasattr(like, "new_tensor") else xp.asarray(levels)


def _bisect(xp: Any, rising: Array, values: Array, side: str = "left") -> Array:
    """The first place where ``rising`` [c, n] is at least (right: above) ``values`` [c, m]."""
    if xp is not np:
        return xp.searchsorted(rising, values, side=side)
    if len(rising) == 1:
        return rising[0].searchsorted(values, side)
    return np.stack([r.searchsorted(v, side) for r, v in zip(rising, values, strict=True)])


def _take(xp: Any, values: Array, index: Array) -> Array:
    """``values`` [c, n] at ``index`` [c, m]."""
    if xp is np:
        return values[:, index[0]] if len(values) == 1 else np.take_along_axis(values, index, -1)
    return xp.take_along_dim(values, index, -1)


def _no_nan(xp: Any, values: Array) -> Array:
    """0/0 is the worst there is."""
    return xp.where(values == values, values, float("inf"))


def _whole(xp: Any, values: Array) -> Array:
    return values.long() if hasattr(values, "long") else values.astype(xp.int64)
