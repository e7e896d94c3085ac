"""Choose the shifts of all classes on true counts, by coordinate descent.

Two classes have one shift to choose, and it is scanned like any threshold. Coverage targets are a
transport problem, solved exactly. Everything else starts from the shifts that predict each class as
often as it occurs, and goes through the classes one by one, each shift scanned while the others
stay: on these examples nothing gets worse on the way, but the best point of each shift by itself
need not be the best of all.

One shift is a threshold on sorted margins ``score - (best of the others)``, so the scan that places
thresholds places shifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints, quiet
from setpoint.axes.choice import of_one
from setpoint.axes.class_data import ClassData, best_other, class_spreads, decide
from setpoint.axes.confusion import MatricesAlongPath, ShiftPath
from setpoint.axes.cuts import Cuts
from setpoint.axes.scan import (
    Hold,
    Placement,
    Worth,
    cost_of,
    holds,
    place,
    placement_at,
    tolerance,
)
from setpoint.axes.specification import Specification
from setpoint.axes.transport import assign, quotas_of, shifts_for
from setpoint.rates import (
    Across,
    Bound,
    ClassSet,
    Expression,
    Range,
    Rate,
    Tables,
    Target,
    Where,
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
    """The shifts that are best on these examples; see :class:`Gathering` for ``undefined``.

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
        _finite_shift(float(x[0, 0]), cuts.scores[0]) for x in (placed.threshold, placed.marginal)
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
            name, level, heads = found
            column = int(np.argmax(data.members[(name,)]))
            wanted[column] = level if heads else level * float(data.weights.sum())
    return wanted


def coverage_target(target: Target) -> tuple[str | int, float, bool] | None:
    """The class, level and whether in heads, if a target is the coverage of one class."""
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


@dataclass
class CoordinateDescent:
    """The search for shifts on some examples; ``shifts`` and the assignment ``held`` change."""

    problem: Specification
    targets: list[Hold]
    data: ClassData
    shifts: Floats
    held: Ints
    undefined: float | None

    def order(self, columns: Ints) -> Ints:
        """Rare classes first; the numbers of the columns decide nothing."""
        return columns[
            np.lexsort((class_spreads(self.data.scores)[columns], self.data.truth[columns]))
        ]

    def improve(self, columns: Ints, rows: Ints, rounds: int) -> None:
        """Put the shifts of ``columns`` where they are best, given that only ``rows`` may move."""
        if len(columns) < 2 or not len(rows):
            return
        for _ in range(rounds):
            moved = [self.move(column, columns, rows) for column in self.order(columns)]
            if not any(moved):
                return

    def move(self, column: int, among: Ints, rows: Ints) -> bool:
        """Put one shift where it is best; whether anything became better."""
        if not self.targets:
            return self._move_freely(column, among, rows)
        cuts, placed = self.placed(column, among, rows)
        now = cuts.above(np.full((1, 1), self.shifts[column]))
        if not self._better(cuts, placed.cut, now):
            return False
        self._take(cuts, column, _finite_shift(placed.threshold[0, 0], cuts.scores[0]))
        return True

    def _move_freely(self, column: int, among: Ints, rows: Ints) -> bool:
        """The same without targets, in half the time."""
        cuts = self._cuts(column, among, rows)
        cost = cost_of(self.problem, cuts.tables())
        cost = np.broadcast_to(cost, (1, 1, len(rows) + 1))[0, 0]
        margins = cuts.scores[0]
        inside = np.flatnonzero(margins[:-1] > margins[1:]) + 1  # equal ones are never split
        cut = np.concatenate([[0], inside, [len(rows)]])
        now, slack = (margins > self.shifts[column]).sum(), tolerance(self.problem.objective)
        least = cost[cut].min()
        if not least < cost[now] - slack:
            return False
        best = int(cut[np.flatnonzero(cost[cut] <= least + slack)[-1]])
        self._take(cuts, column, _shift_at(margins, best))
        return True

    def _take(self, cuts: ClassCuts, column: int, shift: float) -> None:
        self.shifts[column] = shift
        came = cuts.scores[0] > shift
        assert cuts.path is not None
        self.held = cuts.path.start.copy()
        self.held[cuts.path.order[came]] = column

    def stopped(self, column: int) -> list[bool]:
        """For each target, whether it is what keeps the shift where it is now."""
        cuts = self._cuts(column, np.arange(len(self.shifts)), np.arange(len(self.held)))
        now = cuts.above(np.full((1, 1), self.shifts[column]))
        found = placement_at(cuts, self._targets(column), now, np.zeros((1, 1)))
        return [bool(held[0, 0]) for held in found.holding]

    def placed(self, column: int, among: Ints, rows: Ints) -> tuple[ClassCuts, Placement]:
        """All places of a shift, and the best one."""
        cuts = self._cuts(column, among, rows)
        return cuts, place(cuts, self.problem, self._targets(column))

    def _cuts(self, column: int, among: Ints, rows: Ints) -> ClassCuts:
        return ClassCuts.at(
            self.data,
            self.shifts,
            column,
            among=among,
            rows=rows,
            held=self.held,
            undefined=self.undefined,
        )

    def _targets(self, column: int) -> list[Hold]:
        return [_seen_by(hold, column, self.data.members) for hold in self.targets]

    def _better(self, cuts: ClassCuts, cut: Any, now: Any) -> bool:
        """Whether the targets are missed by less, or the objective is better at equal misses."""
        with quiet():
            tables = (cuts.tables_at(cut), cuts.tables_at(now))
            new, old = (Worth.of(self.problem, self.targets, each) for each in tables)
        close = min([hold.tolerance for hold in self.targets] or [0.0])
        return new.beats(old, close, tolerance(self.problem.objective))

    def decide(self) -> None:
        """Give every example the class that its shifted scores say."""
        self.held = decide(self.data.scores, self.shifts)


@dataclass(frozen=True)
class ClassCuts(Cuts):
    """Cuts of the sorted margins of one class."""

    path: ShiftPath | None = None
    undefined: float | None = None

    @classmethod
    def at(
        cls,
        data: ClassData,
        shifts: Floats,
        column: int,
        *,
        among: Ints,
        rows: Ints,
        held: Ints,
        undefined: float | None = None,
    ) -> ClassCuts:
        """All places of the shift of ``column``.

        Args:
            data: The examples.
            shifts: Those of all classes; that of ``column`` does not matter.
            column: The class whose shift is looked at.
            among: The classes that compete for ``rows``.
            rows: Examples that may change their class.
            held: The class of every example; that of other rows stays.
            undefined: See :class:`Gathering`.
        """
        shifted = data.scores - shifts
        few = shifted[np.ix_(rows, among)]
        best, whose = best_other(few, int(np.flatnonzero(among == column)[0]))
        margins = data.scores[rows, column] - best
        falling = np.argsort(-margins, kind="stable")
        start = held.copy()
        start[rows] = among[whose]
        sorted_margins = _equalized(margins[falling], float(np.abs(data.scores).max()))
        path = ShiftPath(
            data, column, rows[falling], among[whose][falling], start, sorted_margins, shifted
        )
        scores = sorted_margins[None]
        present = np.array([len(rows)])
        return cls(scores, -scores, present, {}, path, undefined)

    @cached_property
    def _along(self) -> dict[Where, MatricesAlongPath]:
        assert self.path is not None
        inside = self.path.data.inside
        return {where: MatricesAlongPath(self.path, where, self.undefined) for where in inside}

    def tables(self) -> Tables:
        """The counts at all cuts, ``[1, 1, n + 1]``."""
        return {where: along.table() for where, along in self._along.items()}

    def tables_at(self, cut: Any) -> Tables:
        """The counts at the one cut in ``cut`` [1, 1]."""
        assert self.path is not None
        return self.path.tables_at(int(cut[0, 0]), self.undefined)


def _shift_at(margins: Floats, cut: int) -> float:
    """A shift that takes the ``cut`` highest margins: half way to the next one, if there is any."""
    if cut == 0:
        return float(margins[0])
    if cut == len(margins):
        return _finite_shift(-np.inf, margins)
    middle = margins[cut - 1] / 2 + margins[cut] / 2
    return float(middle if middle < margins[cut - 1] else margins[cut])  # no float between them


def _finite_shift(threshold: float, margins: Floats) -> float:
    """A finite threshold; instead of minus infinity, one below all margins."""
    if threshold > -np.inf:
        return float(threshold)
    return float(margins.min() - 0.1 * (np.ptp(margins) or 1.0))


def _equalized(falling: Floats, size: float) -> Floats:
    """Margins that differ by rounding alone made equal: no shift could tell them apart."""
    opens = np.concatenate([[True], falling[:-1] - falling[1:] > 1e-12 * size])
    return np.asarray(falling[opens][np.cumsum(opens) - 1])


def _seen_by(hold: Any, column: int, members: Mapping[ClassSet, Floats]) -> Any:
    """A target as the scan of one shift reads it: what another class gains, this one loses."""
    sides = {
        bool(members[rate.classes][column]) for rate in hold.expression.rates() if rate.classes
    }
    if hold.caps is None or len(sides) != 1:
        return replace(hold, caps=None, sorts=False)
    return replace(hold, caps=hold.caps == sides.pop(), sorts=False)
