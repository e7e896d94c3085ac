"""Choose the shifts of all classes on hard counts.

Two classes have one shift to choose, and it is scanned like any threshold. Coverage targets are a
transport problem, solved exactly. Everything else starts from the shifts that predict each class as
often as it occurs, and goes through the classes one by one, each shift scanned while the others
stay: on the examples at hand nothing gets worse on the way, but a best point of each shift by
itself need not be the best of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.problems.class_checks import covered
from setpoint.problems.classes.data import ClassData, Floats
from setpoint.problems.classes.decide import decide
from setpoint.problems.classes.quotas import shared_out
from setpoint.problems.classes.settle import settle
from setpoint.problems.classes.sweep import Sweep, finite
from setpoint.problems.classes.transport import transport
from setpoint.problems.classes.turns import ROUNDS, freely, share_out, smoother, take_turns
from setpoint.problems.cuts import quiet
from setpoint.problems.holds import holds
from setpoint.problems.problem import Problem
from setpoint.rates import Expression, Rate


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


def find(
    problem: Problem, data: ClassData, undefined: float | None = None, *, by_mean: bool = True
) -> Found:
    """The shifts that are best on these examples; see :class:`Gathering` for ``undefined``.

    The worst of classes is looked for from where their mean is best, or not (``by_mean=False``).
    """
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
            share_out(search, wanted, free)
        else:
            freely(search, columns, everyone, smoother(problem) if by_mean else None)
            freely(search, columns, everyone, problem)
            if any(hold.sense == "at" for hold in search.targets):
                take_turns(search, own, free)
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
