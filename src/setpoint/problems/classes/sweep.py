"""One shift after the other, each put where it is best while the others stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.problems.classes.cuts import ClassCuts, with_caps
from setpoint.problems.classes.data import ClassData, Floats, Whole
from setpoint.problems.classes.decide import decide, traits
from setpoint.problems.cuts import no_nan, quiet
from setpoint.problems.holds import Hold, tolerance
from setpoint.problems.problem import Problem
from setpoint.problems.scan import Placement, place, sit


@dataclass
class Sweep:
    """The search for shifts of one problem on some examples; ``shifts`` change, ``held`` too."""

    problem: Problem
    targets: list[Hold]
    data: ClassData
    shifts: Floats
    held: Whole
    undefined: float | None

    def order(self, columns: Whole) -> Whole:
        """Rare classes first; the numbers of the columns decide nothing."""
        return columns[np.lexsort((traits(self.data.scores)[columns], self.data.truth[columns]))]

    def improve(self, columns: Whole, rows: Whole, rounds: int) -> None:
        """Put the shifts of ``columns`` where they are best, with ``rows`` to be had by them."""
        if len(columns) < 2 or not len(rows):
            return
        for _ in range(rounds):
            moved = [self.move(column, columns, rows) for column in self.order(columns)]
            if not any(moved):
                return

    def move(self, column: int, among: Whole, rows: Whole) -> bool:
        """Put one shift where it is best; whether anything became better."""
        if not self.targets:
            return self._move_freely(column, among, rows)
        cuts, placed = self.placed(column, among, rows)
        now = cuts.above(np.full((1, 1), self.shifts[column]))
        if not self._better(cuts, placed.cut, now):
            return False
        self._take(cuts, column, finite(placed.threshold[0, 0], cuts.scores[0]))
        return True

    def _move_freely(self, column: int, among: Whole, rows: Whole) -> bool:
        """The same where nothing has to be held: half the work, and steps of training wait."""
        cuts = self._cuts(column, among, rows)
        cost = self.problem.objective.of(cuts.tables()) * (-1 if self.problem.maximize else 1)
        cost = no_nan(np, np.broadcast_to(cost, (1, 1, len(rows) + 1)))[0, 0]
        margins = cuts.scores[0]
        inside = np.flatnonzero(margins[:-1] > margins[1:]) + 1  # equal ones are never split
        cut = np.concatenate([[0], inside, [len(rows)]])
        now, slack = (margins > self.shifts[column]).sum(), tolerance(self.problem.objective)
        least = cost[cut].min()
        if not least < cost[now] - slack:
            return False
        best = int(cut[np.flatnonzero(cost[cut] <= least + slack)[-1]])
        self._take(cuts, column, between(margins, best))
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
        found = sit(cuts, self._targets(column), now, np.zeros((1, 1)))
        return [bool(held[0, 0]) for held in found.holding]

    def placed(self, column: int, among: Whole, rows: Whole) -> tuple[ClassCuts, Placement]:
        """All places of a shift, and the best one."""
        cuts = self._cuts(column, among, rows)
        return cuts, place(cuts, self.problem, self._targets(column))

    def _cuts(self, column: int, among: Whole, rows: Whole) -> ClassCuts:
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
        return [with_caps(hold, column, self.data.members) for hold in self.targets]

    def _better(self, cuts: ClassCuts, cut: Any, now: Any) -> bool:
        """Whether the targets are missed by less, or the objective is better at equal misses."""
        (missed, cost), (missed_now, cost_now) = (self._worth(cuts, at) for at in (cut, now))
        close = min([hold.tolerance for hold in self.targets] or [0.0])
        if abs(missed - missed_now) > close:
            return missed < missed_now
        return cost < cost_now - tolerance(self.problem.objective)

    def _worth(self, cuts: ClassCuts, cut: Any) -> tuple[float, float]:
        with quiet(np):
            tables, missed = cuts.tables_at(cut), 0.0
            for hold in self.targets:
                gap = no_nan(np, hold.gap(hold.expression.of(tables), hold.levels[0]))
                missed += float(np.max(np.where(gap > hold.tolerance, gap, 0.0)))
            cost = no_nan(
                np, self.problem.objective.of(tables) * (-1 if self.problem.maximize else 1)
            )
        return missed, float(np.max(cost))

    def decide(self) -> None:
        """Give every example the class that its shifted scores say."""
        self.held = decide(self.data.scores, self.shifts)


def between(margins: Floats, cut: int) -> float:
    """A shift that takes the ``cut`` highest margins: half way to the next one, if there is any."""
    if cut == 0:
        return float(margins[0])
    if cut == len(margins):
        return finite(-np.inf, margins)
    middle = margins[cut - 1] / 2 + margins[cut] / 2
    return float(middle if middle < margins[cut - 1] else margins[cut])  # no float between them


def finite(threshold: float, margins: Floats) -> float:
    """A threshold that takes everybody, as a number."""
    if threshold > -np.inf:
        return float(threshold)
    return float(margins.min() - 0.1 * (np.ptp(margins) or 1.0))
