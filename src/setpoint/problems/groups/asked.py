"""What is asked of groups, sorted by whom it binds: one cell, all in a window, or all jointly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.problems.cuts import no_nan
from setpoint.problems.groups.cells import Cell, Cells
from setpoint.problems.groups.forms import Window, conditions, home, window_of
from setpoint.problems.holds import TOLERANCE, Hold, hold_of
from setpoint.problems.inputs import Floats
from setpoint.problems.problem import Problem
from setpoint.problems.scan import admissible
from setpoint.rates import ONE, Bound, Fold, Rate, Setpoint, maximum, minimum


@dataclass(frozen=True)
class Together:
    """A window, and the cells and rates it binds."""

    window: Window
    cells: tuple[int, ...]
    rates: tuple[Floats, ...]


class Asked:
    """The targets of a problem on these cells.

    If they are only a ``sample`` to learn from, rates of groups may differ by what one example of
    the smallest group changes: a batch that cannot resolve 2 % should not be pushed to the ends
    where all rates are 0 or 1.
    """

    def __init__(self, problem: Problem, cells: Cells, *, sample: bool = False) -> None:
        asked = (_present(target, cells) for target in conditions(problem.subject_to))
        self.targets = [target for target in asked if target is not None]
        self.coarse: list[tuple[Bound | Setpoint, float]] = []
        self.local: list[list[Hold]] = [[] for _ in cells.cells]
        self.windows: list[Together] = []
        self.joint: list[Bound | Setpoint] = []
        for target in self.targets:
            g, window = cells.cell_of(home(target.expression)), window_of(target)
            together = None if window is None else _bound_by(window, cells)
            if sample and together is not None:
                together = self._resolved(target, together, cells)
            if g is not None:
                self.local[g].append(hold_of(target))
            elif together is not None:
                self.windows.append(together)
            else:
                self.joint.append(target)

    def _resolved(self, target: Bound | Setpoint, together: Together, cells: Cells) -> Together:
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

    def slack(self, target: Bound | Setpoint) -> float:
        """By how much a target may be missed because the examples are too few for it."""
        missed = [step - target.level for coarse, step in self.coarse if coarse == target]
        return max(0.0, *missed) + TOLERANCE if missed else 0.0

    def violation(self, tables: Any) -> Any:
        """By how much all targets together are missed; within tolerance counts as met."""
        total: Any = 0.0
        for target in self.targets:
            hold = hold_of(target)
            gap = no_nan(np, hold.gap(target.expression.of(tables), target.level))
            close = max(hold.tolerance, self.slack(target))
            total = total + np.where(gap > close, gap, 0.0)
        return total


def allowed(cell: Cell, targets: list[Hold]) -> NDArray[np.bool_]:
    """The cuts of a cell that miss its own targets least."""
    values = [cell.values(hold.expression)[None, None] for hold in targets]
    zero = np.zeros((1, 1, len(cell.tp)))
    best, _ = admissible(cell.cuts, targets, values, cell.cuts.valid(), zero)
    found: NDArray[np.bool_] = best[0, 0]
    return found


def pull(target: Bound | Setpoint, cells: Cells, tables: Any) -> Floats:
    """The direction in counts that raises what a joint target bounds."""
    e = target.expression
    if isinstance(e, Fold) and e.kind == "abs":
        e = e.parts[0]
    slopes = cells.slopes(_linear(e, target.level), tables)
    turn = -1.0 if isinstance(target, Bound) and target.sense == ">=" else 1.0
    return turn * np.nan_to_num(slopes, posinf=0.0, neginf=0.0)


def excess(target: Bound | Setpoint, tables: Any) -> float:
    """How far a joint target is missed, signed if it has two sides; 0 inside."""
    e, level = target.expression, target.level
    if isinstance(target, Setpoint):
        return float(e.of(tables)) - level
    if isinstance(e, Fold) and e.kind == "abs" and target.sense == "<=":
        value = float(e.parts[0].of(tables))
        return value - level if value > level else value + level if value < -level else 0.0
    return max(0.0, float(target.gap(tables)))


def _linear(e: Any, level: float) -> Any:
    """``precision >= 0.9`` as ``TP - 0.9 (TP + FP) >= 0``: the same, in counts that add up."""
    if isinstance(e, Rate) and not e.is_steady:
        return Rate(e.numerator - level * e.denominator, ONE, e.where)
    return e


def _bound_by(window: Window, cells: Cells) -> Together | None:
    """The cells of a window's parts, if each is one of its own."""
    found = [cells.cell_of(home(part)) for part in window.parts]
    places = tuple(g for g in found if g is not None)
    if len(set(places)) < len(found):
        return None
    pairs = zip(places, window.parts, strict=True)
    return Together(window, places, tuple(cells.cells[g].values(part) for g, part in pairs))


def _present(target: Bound | Setpoint, cells: Cells) -> Bound | Setpoint | None:
    """The target without the groups that cannot be judged here; None if nothing is left of it."""
    if cells.defined(target.expression):
        return target
    window = window_of(target)
    parts = [] if window is None else [p for p in window.parts if cells.defined(p)]
    if window is None or len(parts) < 2:
        return None
    apart = maximum(*parts) - window.factor * minimum(*parts)
    return apart <= window.width
