"""What a choice of cuts costs, group by group.

Most objectives add up over groups once they are written for each (``error``), or are the worst of
them. A ratio over everyone (precision) is replaced by its tangent at the present choice; choosing
by it and taking the next tangent is Dinkelbach's method, which never gets worse and ends at the
best ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from setpoint.problems.groups.cells import Cells
from setpoint.problems.groups.forms import home
from setpoint.problems.inputs import Floats
from setpoint.problems.problem import Problem
from setpoint.rates import Combination, Expression, Fold, Rate

WORST = 1e300
"""The cost of 0/0: worse than any, and still a number that adds up."""


class Costs:
    """The objective of a problem, to be minimized, at every cut of every cell."""

    def __init__(self, problem: Problem, cells: Cells) -> None:
        self.cells = cells
        self.sign = -1.0 if problem.maximize else 1.0
        self.objective = problem.objective
        worst = "min" if problem.maximize else "max"
        e = problem.objective
        parts = e.parts if isinstance(e, Fold) and e.kind == worst else ()
        parts = tuple(part for part in parts if cells.defined(part))
        self.is_worst = bool(parts) and all(self._home(part) is not None for part in parts)
        self.total: Callable[..., Any] = np.max if self.is_worst else np.sum
        self.fixed = [np.zeros(len(cell.tp)) for cell in cells.cells]
        self.bent: list[tuple[float, Expression]] = []
        if self.is_worst:
            self.fixed = [np.full(len(cell.tp), -WORST) for cell in cells.cells]
            for part in parts:
                self._add(part, 1.0, np.maximum)
        else:
            for weight, term in e.terms if isinstance(e, Combination) else ((1.0, e),):
                self._add(term, weight, np.add)

    def _home(self, expression: Expression) -> int | None:
        return self.cells.cell_of(home(expression))

    def _add(self, term: Expression, weight: float, combine: Callable[..., Any]) -> None:
        """A term of one cell at all its cuts; one that adds up over cells; else its tangent."""
        g = self._home(term)
        if g is not None:
            values = self.sign * weight * self.cells.cells[g].values(term)
            values = np.where(np.isnan(values), WORST, values)
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

    def value(self, tables: Any) -> Any:
        """The true objective, to be minimized; 0/0 is the worst."""
        values = self.sign * np.asarray(self.objective.of(tables), float)
        return np.where(np.isnan(values), WORST, values)
