"""The cheapest shifts of all classes, exactly: branch and bound over differences of shifts.

A cost matrix gives every example a price for each class, and the prices add up. Which class an
example gets depends on the differences of shifts alone: in a zone where ``t_j - t_k`` is at most
``limits[j, k]`` it can get class ``k`` unless ``s_j - s_k >= limits[j, k]`` for some ``j``. So the
cheapest class that each example can still get bounds the cost of a zone from below. The zone with
the lowest bound is split where two classes compete for most money, at the median difference of
their scores, until no zone can be cheaper than the best shifts that are known.

There are as many zones as ``n ** (K - 1)``, and no algorithm is known whose time does not grow so
with the number of classes (the deepest cell of an arrangement of hyperplanes). Few of them are
looked at: 100 to 1,300 for 3 classes and 5,000 examples, about 500 for 5 classes and 100 examples.
The search ends after :data:`MOST_COMPARISONS`, with the best shifts that it knows.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from setpoint.axes.arrays import Bools, Floats, Ints
from setpoint.axes.class_data import ClassData, decide
from setpoint.axes.specification import Specification
from setpoint.axes.transport import shifts_for
from setpoint.rates import Cost

MOST_COMPARISONS = 10**8
"""Comparisons of two scores of an example, about a second."""
_SAME_COST = 1e-9
"""Costs that differ by less, relative to all prices, are equal."""


class Zone(NamedTuple):
    """Shifts whose differences have limits.

    Attributes:
        bound: What the examples cost there at least.
        number: In which order zones were made.
        limits: How much ``t_j - t_k`` is at most, ``[K, K]``; infinite where ``j`` is ``k``.
        rows: Examples that may get classes of different prices.
        possible: Which classes they may get, ``[len(rows), K]``.
        settled: What all other examples cost.
    """

    bound: float
    number: int
    limits: Floats
    rows: Ints
    possible: Bools
    settled: float


def cheapest_shifts(problem: Specification, data: ClassData, start: Floats) -> Floats | None:
    """Shifts that cost less than ``start`` on these examples, the cheapest of all.

    None if there are none, the search was cut short, or the problem is not to find the lowest (or
    highest) value of one cost matrix.
    """
    goal = problem.objective
    if not isinstance(goal, Cost) or problem.subject_to:
        return None
    prices = data.inside[goal.where][:, None] * np.asarray(goal.costs)[data.labels]
    prices = -prices if problem.maximize else prices
    held = decide(data.scores, start)
    best = float(np.take_along_axis(prices, held[:, None], axis=1).sum())
    limits = _search(data.scores, prices, best - _SAME_COST * float(np.abs(prices).max(1).sum()))
    if limits is None:
        return None
    paths = limits.copy()
    np.fill_diagonal(paths, 0.0)
    return shifts_for(data.scores, decide(data.scores, paths.mean(1)))[0]


def _search(scores: Floats, prices: Floats, best: float) -> Floats | None:
    """The limits of the zone that costs least, if that is less than ``best``."""
    found, left, made = None, MOST_COMPARISONS, 0
    zones = [_zone(scores, prices, _widest(scores), np.arange(len(scores)), 0.0, made)]
    while zones and zones[0].bound < best and left > 0:
        zone = heapq.heappop(zones)
        if not len(zone.rows):
            best, found = zone.bound, zone.limits
            continue
        for limits in _halves_of(zone, scores, prices):
            made += 1
            left -= len(zone.rows) * limits.size
            part = _zone(scores, prices, limits, zone.rows, zone.settled, made)
            if part.bound < best:
                heapq.heappush(zones, part)
    return found


def _widest(scores: Floats) -> Floats:
    """Limits that exclude no decision: beyond them a class loses every example to another."""
    count = scores.shape[1]
    limits = np.stack([(scores[:, [j]] - scores).max(0) for j in range(count)])
    limits += 0.1 * (float(np.abs(limits).max()) or 1.0)
    np.fill_diagonal(limits, np.inf)
    return limits


def _zone(
    scores: Floats, prices: Floats, limits: Floats, rows: Ints, settled: float, number: int
) -> Zone:
    """A zone of which some examples are still to be looked at."""
    own, price = scores[rows], prices[rows]
    possible = np.stack(
        [(own - own[:, [k]] < limits[:, k]).all(1) for k in range(len(limits))], axis=1
    )
    low = np.where(possible, price, np.inf).min(1)
    open_ = np.where(possible, price, -np.inf).max(1) > low
    settled += float(low[~open_].sum())
    bound = settled + float(low[open_].sum())
    return Zone(bound, number, limits, rows[open_], possible[open_], settled)


def _halves_of(zone: Zone, scores: Floats, prices: Floats) -> list[Floats]:
    """The limits of both halves, those that are not empty."""
    count, s, p = len(zone.limits), scores[zone.rows], prices[zone.rows]
    pairs = [(j, k) for j in range(count) for k in range(j)]
    both = {(j, k): zone.possible[:, j] & zone.possible[:, k] for j, k in pairs}
    money = {(j, k): (both[j, k] * np.abs(p[:, j] - p[:, k])).sum() for j, k in pairs}
    j, k = max(pairs, key=money.__getitem__)
    differences = np.sort(s[both[j, k], j] - s[both[j, k], k])
    at = float(differences[len(differences) // 2])
    paths = zone.limits.copy()
    np.fill_diagonal(paths, 0.0)
    halves = []
    for a, b, limit in ((j, k, at), (k, j, -at)):  # t_a - t_b <= limit, and what follows from it
        limits = np.minimum(paths, paths[:, [a]] + limit + paths[[b], :])
        np.fill_diagonal(limits, np.inf)
        halves += [limits] if (limits + limits.T > 0).all() else []
    return halves
