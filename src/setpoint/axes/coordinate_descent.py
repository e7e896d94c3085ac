"""Coordinate descent over the shifts of classes: one shift is scanned while the others stay.

One shift is a threshold on sorted margins ``score - (best of the others)``, so the scan that places
thresholds places shifts. On the examples at hand nothing gets worse on the way, but the best point
of each shift by itself need not be the best of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints, quiet
from setpoint.axes.class_data import ClassData, best_other, class_spreads, decide
from setpoint.axes.confusion import MatricesAlongPath, ShiftPath
from setpoint.axes.cuts import Cuts
from setpoint.axes.scan import Hold, Placement, Worth, cost_of, place, placement_at, tolerance
from setpoint.axes.specification import Specification
from setpoint.rates import ClassSet, Tables, Where


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
        self._take(cuts, column, finite_shift(placed.threshold[0, 0], cuts.scores[0]))
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
            undefined: See :class:`.ConfusionMatrix`.
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
        return finite_shift(-np.inf, margins)
    middle = margins[cut - 1] / 2 + margins[cut] / 2
    return float(middle if middle < margins[cut - 1] else margins[cut])  # no float between them


def finite_shift(threshold: float, margins: Floats) -> float:
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
