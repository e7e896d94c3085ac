"""The true value of a problem of classes on data, and the best shifts there.

The cheapest shifts of a cost matrix are found exactly: branch and bound over differences of shifts.
The matrix gives every example a price for each class, and the prices add up. Which class an
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
from typing import Any, NamedTuple

import numpy as np

from setpoint.axes.areas import class_area
from setpoint.axes.arrays import Bools, Floats, Ints, quiet, to_numpy
from setpoint.axes.choice import Choice, Infeasible, rates_reached, worst
from setpoint.axes.class_data import ClassData, decide, read_data
from setpoint.axes.class_search import class_room, find_shifts, mean_over_classes
from setpoint.axes.confusion import hard_tables
from setpoint.axes.scan import Worth, holds
from setpoint.axes.specification import Specification
from setpoint.axes.transport import shifts_for
from setpoint.batch import ScoredExamples
from setpoint.rates import Across, ClassArea, Cost, Tables

MOST_COMPARISONS = 10**8
"""Comparisons of two scores of an example, about a second."""
_SAME_COST = 1e-9
"""Costs that differ by less, relative to all prices, are equal."""


def evaluate_classes(problem: Specification, examples: ScoredExamples, shifts: Any) -> float:
    """See :meth:`setpoint.problems.Problem.evaluate`."""
    if isinstance(problem.objective, ClassArea):
        data = _read_classes(problem, examples)
        return class_area(problem.objective.kind, data)
    if shifts is None:
        return choose_classes(problem, examples).value
    data = _read_classes(problem, examples)
    t = to_numpy(shifts, "thresholds").reshape(-1)
    if t.shape != (data.scores.shape[1],) or not np.isfinite(t).all():
        raise ValueError(
            f"This problem takes one finite shift for each of {data.scores.shape[1]} classes; "
            f"got {shifts!r:.60}."
        )
    return _value_at(problem, data, t)


def choose_classes(problem: Specification, examples: ScoredExamples) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`."""
    data = _read_classes(problem, examples)
    if isinstance(problem.objective, ClassArea):
        raise ValueError(f"`{problem}` has no shifts to choose: it is about scores only.")
    shifts = _best(problem, data)
    value = _value_at(problem, data, shifts)
    with quiet():
        tables = hard_tables(data, data.scores - shifts, np.nan)
        check_reached(problem, data, tables)
        rates = rates_reached(problem, value, tables)
    return Choice(tuple(shifts.tolist()), value, rates)


def best_shifts(problem: Specification, examples: ScoredExamples) -> tuple[Floats, str]:
    """The shifts ``[K]``, and what to say if they do not reach the targets (else nothing)."""
    try:
        return np.asarray(choose_classes(problem, examples).thresholds), ""
    except Infeasible as error:
        data = read_data(problem, examples)
        return find_shifts(problem, data).shifts, f"{error} The nearest are used."


def check_reached(problem: Specification, data: ClassData, tables: Tables) -> None:
    """Bounds must hold; a coverage may be off by K - 1 examples, another setpoint by one."""
    for target in problem.points[0]:
        value = float(target.expression.of(tables))
        if not float(target.gap(tables)) <= class_room(target, data, tables):
            nearest = "it is 0/0" if np.isnan(value) else f"the nearest gives {value:.6g}"
            raise Infeasible(
                f"No shifts were found that reach `{' and '.join(map(str, problem.subject_to))}`: "
                f"for {target.expression} {nearest}. The data have {len(data.scores):,} examples "
                f"of {int((data.truth > 0).sum())} classes. Loosen the target, or pass more data."
            )


def _best(problem: Specification, data: ClassData) -> Floats:
    """The best shifts that are known: the cheapest of a cost matrix, else by coordinate descent.

    The worst of classes is looked for in two ways: over their mean helps if they are many.
    """
    first = find_shifts(problem, data, worst(problem)).shifts
    if mean_over_classes(problem) is None:
        return _cheaper(problem, data, first)
    second = find_shifts(problem, data, worst(problem), by_mean=False).shifts
    with quiet():
        tables = (hard_tables(data, data.scores - t, worst(problem)) for t in (first, second))
        one, two = (Worth.of(problem, holds(problem), each) for each in tables)
    return second if two.beats(one, 0.0, 0.0) else first


def _cheaper(problem: Specification, data: ClassData, found: Floats) -> Floats:
    """Shifts that cost less than those ``found``, if there are any."""
    better = cheapest_shifts(problem, data, found)
    if better is None:
        return found
    values = [_value_at(problem, data, shifts) for shifts in (found, better)]
    return better if (values[1] > values[0]) == problem.maximize else found


def _read_classes(problem: Specification, examples: ScoredExamples) -> ClassData:
    data = read_data(problem, examples)
    if not len(data.scores):
        raise ValueError("There are no scores to evaluate: pass at least one example.")
    for where, weights in data.inside.items():
        if where and not weights.any():
            raise ValueError(f"No example has {dict(where)}; the slice is empty.")
    everything = any(isinstance(node, (Across, ClassArea)) for node in problem.nodes())
    missing = [name for name, weight in zip(data.names, data.truth, strict=True) if not weight]
    if everything and missing:
        raise ValueError(
            f"`{problem}` looks at every class, and there is no example of {missing[0]!r}. Pass "
            "data with all classes, or leave its column out of the scores."
        )
    return data


def _value_at(problem: Specification, data: ClassData, shifts: Floats) -> float:
    """The objective; 0/0 is its worst value, unless the data leave no other."""
    with quiet():
        tables = hard_tables(data, data.scores - shifts, worst(problem))
        value = float(problem.objective.of(tables))
        if np.isnan(value):
            value = worst(problem) if _other(problem, data) else value
    if np.isnan(value):
        present = ", ".join(map(repr, np.array(data.names, object)[data.truth > 0][:10]))
        raise ValueError(
            f"`{problem.objective}` is 0/0 here: one of its denominators is zero. The data have "
            f"examples of {present}; pass data with examples of every class it counts."
        )
    return value


def _other(problem: Specification, data: ClassData) -> bool:
    """Whether the objective is defined when all examples are given some one class."""
    count = data.scores.shape[1]
    for column in range(count):
        all_one = np.tile(np.eye(count)[column], (len(data.scores), 1))
        tables = hard_tables(data, all_one, worst(problem))
        if not np.isnan(problem.objective.of(tables)):
            return True
    return False


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
