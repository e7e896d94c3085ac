"""Choose the shifts of all classes on true counts.

Two classes have one shift to choose, and it is scanned like any threshold. Coverage targets are a
transport problem, solved exactly. Everything else starts from the shifts that predict each class as
often as it occurs and improves them by :mod:`setpoint.axes.coordinate_descent`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.axes.arrays import Floats, Ints, quiet
from setpoint.axes.choice import of_one
from setpoint.axes.class_data import ClassData, decide
from setpoint.axes.coordinate_descent import CoordinateDescent, finite_shift
from setpoint.axes.scan import (
    holds,
    tolerance,
)
from setpoint.axes.specification import Specification
from setpoint.axes.transport import assign, quotas_of, shifts_for
from setpoint.rates import (
    Across,
    Bound,
    Expression,
    Range,
    Rate,
    Tables,
    Target,
    alerts,
    coverage,
)

_ROUNDS = 3
"""Passes over the classes; the first does most of the work."""


@dataclass(frozen=True)
class FoundShifts:
    """Chosen shifts.

    Attributes:
        shifts: What is reported, ``[K]``, adding up to zero: ``argmax(score - shift)`` decides.
        edge: Where training puts them: examples lie between classes, no slope is zero.
        anchors: For a class whose own target stops its shift, what it holds.
    """

    shifts: Floats
    edge: Floats
    anchors: dict[int, Expression]


def find_shifts(
    problem: Specification, data: ClassData, undefined: float | None = None, *, by_mean: bool = True
) -> FoundShifts:
    """The shifts that are best on these examples; see :class:`.ConfusionMatrix` for ``undefined``.

    The worst of classes is looked for from where their mean is best, or not (``by_mean=False``).
    """
    count = data.scores.shape[1]
    everyone, columns = np.arange(len(data.scores)), np.arange(count)
    if not len(everyone):
        return FoundShifts(np.zeros(count), np.zeros(count), {})
    search = CoordinateDescent(
        problem, holds(problem), data, np.zeros(count), np.zeros(len(everyone), int), undefined
    )
    with quiet():
        if count == 2:
            return _two(search)
        wanted = _coverages(problem, data)
        own = _with_own_target(problem, data)
        _begin(search, wanted)
        free = np.array([i for i in columns if i not in own], int)
        if len(wanted) == len(problem.subject_to) and wanted:
            _meet_coverages(search, wanted, free)
        else:
            _without_targets(
                search, columns, everyone, mean_over_classes(problem) if by_mean else None
            )
            _without_targets(search, columns, everyone, problem)
            if any(hold.sense == "at" for hold in search.targets):
                _alternate(search, own, free)
            elif search.targets:
                search.improve(columns, everyone, _ROUNDS)
        middle, edge = shifts_for(data.scores, search.held)
        return FoundShifts(middle, edge, _anchors(search, middle, own, wanted))


def _two(search: CoordinateDescent) -> FoundShifts:
    """One threshold on the difference of two scores."""
    both = np.arange(2)
    cuts, placed = search.placed(1, both, np.arange(len(search.data.scores)))
    at, edge = (
        finite_shift(float(x[0, 0]), cuts.scores[0]) for x in (placed.threshold, placed.marginal)
    )
    half = np.array([-0.5, 0.5])
    scores = search.data.scores
    above = (scores[:, 1] - scores[:, 0] > at).astype(int)
    shifts = at * half
    if not np.array_equal(decide(scores, shifts), above):  # the shift is on a score: rounding
        shifts = shifts_for(scores, above)[0]
    pairs = zip(search.targets, placed.holding, strict=True)
    held = [hold.expression for hold, holds_it in pairs if holds_it[0, 0]]
    return FoundShifts(shifts, edge * half, dict(zip([1], held, strict=False)))


def _with_own_target(problem: Specification, data: ClassData) -> set[int]:
    """The classes that have a target of their own."""
    found = set()
    for target in problem.subject_to:
        rate = target.expression
        if isinstance(rate, Rate) and len(rate.classes) == 1:
            found.add(int(np.argmax(data.members[rate.classes])))
    return found


def _coverages(problem: Specification, data: ClassData) -> dict[int, float]:
    """The weight that setpoints give to classes."""
    wanted = {}
    for target in problem.subject_to:
        found = coverage_target(target)
        if found is not None:
            name, level, is_count = found
            column = int(np.argmax(data.members[(name,)]))
            wanted[column] = level if is_count else level * float(data.weights.sum())
    return wanted


def coverage_target(target: Target) -> tuple[str | int, float, bool] | None:
    """The class, the level and whether it is a count, if a target is the coverage of one class."""
    rate = target.expression
    if isinstance(target, Bound) or not isinstance(rate, Rate) or isinstance(target, Range):
        return None
    if len(rate.classes) != 1 or rate.where:
        return None
    kind = (rate.numerator, rate.denominator)
    if kind == (coverage.numerator, coverage.denominator):
        return rate.classes[0], target.level, False
    if kind == (alerts.numerator, alerts.denominator):
        return rate.classes[0], target.level, True
    return None


def _begin(search: CoordinateDescent, wanted: dict[int, float]) -> None:
    """Start from shifts that predict every class as often as its target says, or as it occurs."""
    data = search.data
    quotas = quotas_of(wanted, data.truth, data.weights)
    search.held = assign(data.scores, quotas, data.weights)
    search.shifts = shifts_for(data.scores, search.held)[0]


def _anchors(
    search: CoordinateDescent, middle: Floats, own: set[int], wanted: dict[int, float]
) -> dict[int, Expression]:
    """Which classes are kept where they are by a target of their own, other than a coverage."""
    search.shifts = middle
    search.decide()
    found: dict[int, Expression] = {}
    for column in own - set(wanted):
        for hold, held in zip(search.targets, search.stopped(column), strict=True):
            rate = hold.expression
            if (held or hold.sense == "at") and isinstance(rate, Rate) and rate.direction:
                members = search.data.members[rate.classes]
                if members[column] and members.sum() == 1:
                    found[column] = rate
    return found


def class_room(target: Target, data: ClassData, tables: Tables) -> float:
    """By how much a target of classes may be off: a setpoint by K - 1 examples."""
    close = tolerance(target.expression)
    if isinstance(target, Bound):
        return close
    steps = (len(data.names) - 1) * float(data.weights.max(initial=0.0))
    return close + of_one(target.expression, tables, steps)


def mean_over_classes(problem: Specification) -> Specification | None:
    """The problem with the mean over classes for the worst of them: it has fewer local optima."""
    objective = problem.objective
    if not isinstance(objective, Across) or objective.kind == "macro":
        return None
    return Specification(Across("macro", objective.inner), problem.maximize)


def _meet_coverages(search: CoordinateDescent, wanted: dict[int, float], free: Ints) -> None:
    """Coverage targets: improve the other shifts, then assign the examples exactly."""
    data = search.data
    kept = np.array(sorted(wanted), int)
    for _ in range(2 if len(free) > 1 else 0):
        rows = np.flatnonzero(np.isin(search.held, free))
        search.improve(free, rows, _ROUNDS)
        shifted = data.scores - search.shifts
        scores = np.column_stack([data.scores[:, kept], shifted[:, free].max(1)])
        rest = {place: wanted[column] for place, column in enumerate(kept)}
        quotas = quotas_of(rest, np.append(data.truth[kept], 1.0), data.weights)
        dealt = assign(scores, quotas, data.weights)
        whose = free[np.argmax(shifted[:, free], axis=1)]
        search.held = np.where(dealt < len(kept), np.append(kept, 0)[dealt], whose)
        search.shifts = shifts_for(data.scores, search.held)[0]


def _without_targets(
    search: CoordinateDescent, columns: Ints, everyone: Ints, problem: Specification | None
) -> None:
    """Improve the shifts as if there were no targets: a good place to start from."""
    if problem is None:
        return
    kept = search.problem, search.targets
    search.problem, search.targets = problem, []
    search.improve(columns, everyone, _ROUNDS)
    search.problem, search.targets = kept


def _alternate(search: CoordinateDescent, own: set[int], free: Ints) -> None:
    """Move the shifts with targets, then the others among themselves, until none moves."""
    columns, everyone = np.arange(len(search.shifts)), np.arange(len(search.data.scores))
    held = np.array(sorted(own), int)
    for turn in range(2 * _ROUNDS):
        for _ in range(2 * len(held)):
            turns = [search.move(i, columns, everyone) for i in search.order(held)]
            if not any(turns):
                break
        search.shifts = shifts_for(search.data.scores, search.held)[
            0
        ]  # from here others may be best
        if turn < _ROUNDS and len(free) > 1:
            search.improve(free, np.flatnonzero(np.isin(search.held, free)), 1)
            search.decide()
        elif turn and not any(turns):
            break
