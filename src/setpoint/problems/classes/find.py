"""Choose the shifts of all classes on hard counts.

Two classes have one shift to choose, and it is scanned like any threshold. Coverage targets are a
transport problem, solved exactly. Everything else starts from the shifts that predict each class as
often as it occurs, and goes through the classes one by one, each shift scanned while the others
stay: on the examples at hand nothing gets worse on the way, but a best point of each shift by
itself need not be the best of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from setpoint.problems.class_checks import covered
from setpoint.problems.classes.data import ClassData, Floats, Whole
from setpoint.problems.classes.decide import decide
from setpoint.problems.classes.settle import settle
from setpoint.problems.classes.sweep import Sweep, finite
from setpoint.problems.classes.transport import transport
from setpoint.problems.cuts import quiet
from setpoint.problems.holds import holds
from setpoint.rates import Across, Expression, Rate

if TYPE_CHECKING:
    from setpoint.problems.problem import Problem

ROUNDS = 3
"""Passes over the classes; the first does most of the work."""


@dataclass(frozen=True)
class Found:
    """Where the shifts are.

    Attributes:
        shifts: What is reported, ``[K]``, adding up to zero: ``argmax(score - shift)`` decides.
        edge: Where training puts them: examples lie between classes, no slope is zero.
        anchors: For a class whose own target stops its shift, what it holds.
    """

    shifts: Floats
    edge: Floats
    anchors: dict[int, Expression]


def find(problem: Problem, data: ClassData, undefined: float | None = None) -> Found:
    """The shifts that are best on these examples; see :class:`Gathering` for ``undefined``."""
    count = data.scores.shape[1]
    everyone, columns = np.arange(len(data.scores)), np.arange(count)
    if not len(everyone):
        return Found(np.zeros(count), np.zeros(count), {})
    search = Sweep(
        problem, holds(problem), data, np.zeros(count), np.zeros(len(everyone), int), undefined
    )
    with quiet(np):
        if count == 2:
            return _two(search)
        wanted = _coverages(problem, data)
        own = _own(problem, data)
        _begin(search, wanted)
        free = np.array([i for i in columns if i not in own], int)
        if len(wanted) == len(problem.subject_to) and wanted:
            _share_out(search, wanted, free)
        else:
            _freely(search, columns, everyone, _smoother(problem))
            _freely(search, columns, everyone, problem)
            if any(hold.sense == "at" for hold in search.targets):
                _take_turns(search, own, free)
            elif search.targets:
                search.improve(columns, everyone, ROUNDS)
        middle, edge = settle(data.scores, search.held)
        return Found(middle, edge, _anchors(search, middle, own, wanted))


def _two(search: Sweep) -> Found:
    """One threshold on the difference of two scores."""
    both = np.arange(2)
    cuts, placed = search.placed(1, both, np.arange(len(search.data.scores)))
    at, edge = (finite(float(x[0, 0]), cuts.scores[0]) for x in (placed.threshold, placed.marginal))
    half = np.array([-0.5, 0.5])
    scores = search.data.scores
    above = (scores[:, 1] - scores[:, 0] > at).astype(int)
    shifts = at * half
    if not np.array_equal(decide(scores, shifts), above):  # the shift is on a score: rounding
        shifts = settle(scores, above)[0]
    pairs = zip(search.targets, placed.holding, strict=True)
    held = [hold.expression for hold, holds_it in pairs if holds_it[0, 0]]
    return Found(shifts, edge * half, dict(zip([1], held, strict=False)))


def _own(problem: Problem, data: ClassData) -> set[int]:
    """The classes that have a target of their own."""
    found = set()
    for target in problem.subject_to:
        rate = target.expression
        if isinstance(rate, Rate) and len(rate.classes) == 1:
            found.add(int(np.argmax(data.members[rate.classes])))
    return found


def _coverages(problem: Problem, data: ClassData) -> dict[int, float]:
    """The weight that setpoints give to classes."""
    wanted = {}
    for target in problem.subject_to:
        found = covered(target)
        if found is not None:
            name, level, heads = found
            column = int(np.argmax(data.members[(name,)]))
            wanted[column] = level if heads else level * float(data.weights.sum())
    return wanted


def _begin(search: Sweep, wanted: dict[int, float]) -> None:
    """Every class as often as it is wanted, or else as it occurs."""
    data = search.data
    quotas = shared_out(wanted, data.truth, data.weights)
    search.held = transport(data.scores, quotas, data.weights)
    search.shifts = settle(data.scores, search.held)[0]


def shared_out(wanted: dict[int, float], truth: Floats, weights: Floats) -> Floats:
    """What each class gets of the whole weight; whole numbers if all weights are 1."""
    total, quotas = float(weights.sum()), truth.astype(float)
    for column, weight in wanted.items():
        quotas[column] = min(weight, total)
    free = [i for i in range(len(quotas)) if i not in wanted]
    left = total - sum(quotas[i] for i in wanted)
    if free:
        own = quotas[free].sum()
        quotas[free] = quotas[free] * left / own if own > 0 else left / len(free)
    return whole_numbers(quotas, wanted, free) if np.all(weights == 1) else quotas


def whole_numbers(quotas: Floats, wanted: dict[int, float], free: list[int]) -> Floats:
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


def _share_out(search: Sweep, wanted: dict[int, float], free: Whole) -> None:
    """Coverage targets: the others settle among themselves, then all is dealt out exactly."""
    data = search.data
    kept = np.array(sorted(wanted), int)
    for _ in range(2 if len(free) > 1 else 0):
        rows = np.flatnonzero(np.isin(search.held, free))
        search.improve(free, rows, ROUNDS)
        shifted = data.scores - search.shifts
        scores = np.column_stack([data.scores[:, kept], shifted[:, free].max(1)])
        rest = {place: wanted[column] for place, column in enumerate(kept)}
        quotas = shared_out(rest, np.append(data.truth[kept], 1.0), data.weights)
        dealt = transport(scores, quotas, data.weights)
        whose = free[np.argmax(shifted[:, free], axis=1)]
        search.held = np.where(dealt < len(kept), np.append(kept, 0)[dealt], whose)
        search.shifts = settle(data.scores, search.held)[0]


def _smoother(problem: Problem) -> Problem | None:
    """The mean over classes in place of the lowest: the way there has fewer dead ends."""
    objective = problem.objective
    if not isinstance(objective, Across) or objective.kind == "macro":
        return None
    mean = Across("macro", objective.inner)
    return type(problem)(**{"maximize" if problem.maximize else "minimize": mean})


def _freely(search: Sweep, columns: Whole, everyone: Whole, problem: Problem | None) -> None:
    """The best shifts if there were no targets: from there it is not far to keep them."""
    if problem is None:
        return
    kept = search.problem, search.targets
    search.problem, search.targets = problem, []
    search.improve(columns, everyone, ROUNDS)
    search.problem, search.targets = kept


def _take_turns(search: Sweep, own: set[int], free: Whole) -> None:
    """Classes with targets against all others, then the others among themselves."""
    columns, everyone = np.arange(len(search.shifts)), np.arange(len(search.data.scores))
    held = np.array(sorted(own), int)
    for turn in range(2 * ROUNDS):
        for _ in range(2 * len(held)):
            turns = [search.move(i, columns, everyone) for i in search.order(held)]
            if not any(turns):
                break
        search.shifts = settle(search.data.scores, search.held)[0]  # from here others may be best
        if turn < ROUNDS and len(free) > 1:
            search.improve(free, np.flatnonzero(np.isin(search.held, free)), 1)
            search.decide()
        elif turn and not any(turns):
            break


def _anchors(
    search: Sweep, middle: Floats, own: set[int], wanted: dict[int, float]
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
