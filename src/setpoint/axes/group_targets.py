"""What is asked of the cuts of groups: their targets, sorted by what they bind, and their costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats
from setpoint.axes.group_cells import Cells
from setpoint.axes.scan import TOLERANCE, Hold, hold_of
from setpoint.axes.specification import Specification
from setpoint.axes.windows import Window, slice_of, split_targets, window_of
from setpoint.rates import Bound, Combination, Expression, Fold, Rate, Setpoint, maximum, minimum

UNDEFINED_COST = 1e300
"""The cost of 0/0: worse than any, and still a number that adds up."""


@dataclass(frozen=True)
class CellsInWindow:
    """A window, and the cells and rates it binds."""

    window: Window
    cells: tuple[int, ...]
    rates: tuple[Floats, ...]


class GroupTargets:
    """The targets of a problem on these cells: of one cell, in a window, or on all jointly.

    On a ``sample``, such as a batch, rates of groups may differ by what one example of the smallest
    group changes: a batch that cannot resolve 2 % should not be pushed to the ends where all rates
    are 0 or 1.
    """

    def __init__(self, problem: Specification, cells: Cells, *, sample: bool = False) -> None:
        asked = (_judgeable(target, cells) for target in split_targets(problem.subject_to))
        self.targets = [target for target in asked if target is not None]
        self.coarse: list[tuple[Bound | Setpoint, float]] = []
        self.local: list[list[Hold]] = [[] for _ in cells.cells]
        self.windows: list[CellsInWindow] = []
        self.joint: list[Bound | Setpoint] = []
        for target in self.targets:
            g, window = cells.cell_of(slice_of(target.expression)), window_of(target)
            together = None if window is None else _bound_by(window, cells)
            if sample and together is not None:
                together = self._resolved(target, together, cells)
            if g is not None:
                self.local[g].append(hold_of(target))
            elif together is not None:
                self.windows.append(together)
            else:
                self.joint.append(target)
        self.holds = [self._hold(target) for target in self.targets]

    def _hold(self, target: Bound | Setpoint) -> Hold:
        """A target as a scan reads it, with the slack that few examples give it."""
        hold = hold_of(target)
        missed = [step - target.level for coarse, step in self.coarse if coarse == target]
        slack = max(0.0, *missed) + TOLERANCE if missed else 0.0
        return replace(hold, tolerance=max(hold.tolerance, slack))

    def _resolved(
        self, target: Bound | Setpoint, together: CellsInWindow, cells: Cells
    ) -> CellsInWindow:
        """The window, as wide as one example of the smallest group if it is narrower."""
        window = together.window
        pairs = zip(together.cells, together.rates, strict=True)
        rates = [rate[cells.cells[g].valid] for g, rate in pairs]
        steps = [np.nanmax(abs(np.diff(rate)), initial=0.0) for rate in rates]
        if window.width >= max(steps) or not all(part.direction for part in window.parts):
            return together
        if window.factor == 1:
            self.coarse.append((target, max(steps)))
        return replace(together, window=replace(window, least=max(steps)))


def _bound_by(window: Window, cells: Cells) -> CellsInWindow | None:
    """The cells of a window's parts, if each is one of its own."""
    found = [cells.cell_of(slice_of(part)) for part in window.parts]
    places = tuple(g for g in found if g is not None)
    if len(set(places)) < len(found):
        return None
    pairs = zip(places, window.parts, strict=True)
    return CellsInWindow(window, places, tuple(cells.cells[g].values(part) for g, part in pairs))


def _judgeable(target: Bound | Setpoint, cells: Cells) -> Bound | Setpoint | None:
    """The target without the groups that cannot be judged here; None if nothing is left of it."""
    if cells.defined(target.expression):
        return target
    window = window_of(target)
    parts = [] if window is None else [p for p in window.parts if cells.defined(p)]
    if window is None or len(parts) < 2:
        return None
    apart = maximum(*parts) - window.factor * minimum(*parts)
    return apart <= window.width


class GroupCosts:
    """The objective of a problem, to be minimized, at every cut of every cell."""

    def __init__(self, problem: Specification, cells: Cells) -> None:
        self.cells = cells
        self.sign = -1.0 if problem.maximize else 1.0
        worst = "min" if problem.maximize else "max"
        e = problem.objective
        parts = e.parts if isinstance(e, Fold) and e.kind == worst else ()
        parts = tuple(part for part in parts if cells.defined(part))
        self.is_worst = bool(parts) and all(self._home(part) is not None for part in parts)
        self.total: Callable[..., Any] = np.max if self.is_worst else np.sum
        self.fixed = [np.zeros(len(cell.tp)) for cell in cells.cells]
        self.bent: list[tuple[float, Expression]] = []
        if self.is_worst:
            self.fixed = [np.full(len(cell.tp), -UNDEFINED_COST) for cell in cells.cells]
            for part in parts:
                self._add(part, 1.0, np.maximum)
        else:
            for weight, term in e.terms if isinstance(e, Combination) else ((1.0, e),):
                self._add(term, weight, np.add)

    def _home(self, expression: Expression) -> int | None:
        return self.cells.cell_of(slice_of(expression))

    def _add(self, term: Expression, weight: float, combine: Callable[..., Any]) -> None:
        """A term of one cell at all its cuts; one that adds up over cells; else its tangent."""
        g = self._home(term)
        if g is not None:
            values = self.sign * weight * self.cells.cells[g].values(term)
            values = np.where(np.isnan(values), UNDEFINED_COST, values)
            self.fixed[g] = combine(self.fixed[g], values)
        elif isinstance(term, Rate) and term.is_steady:
            everyone = [len(cell.tp) - 1 for cell in self.cells.cells]
            slopes = self.cells.slopes(term, self.cells.tables(everyone))
            self._lean(self.fixed, weight * np.nan_to_num(slopes))
        else:
            self.bent.append((weight, term))

    def _lean(self, costs: list[Floats], slopes: Floats) -> None:
        for g, (cell, (by_tp, by_fp)) in enumerate(zip(self.cells.cells, slopes, strict=True)):
            costs[g] = costs[g] + self.sign * (by_tp * cell.tp + by_fp * cell.fp)

    def at(self, picks: Sequence[int]) -> list[Floats]:
        """The cost of every cut of every cell, bent terms by their tangent at ``picks``."""
        costs = list(self.fixed)
        for weight, term in self.bent:
            slopes = self.cells.slopes(term, self.cells.tables(picks))
            self._lean(costs, weight * np.nan_to_num(slopes, posinf=0.0, neginf=0.0))
        return costs
