"""What happened in the last batch of groups: put into words and numbers only when asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.axes.group_cells import key_of
from setpoint.axes.scan import hold_of
from setpoint.problems import Problem
from setpoint.rates import Where, describe_slice
from setpoint.solvers.groups.held import GroupHeld
from setpoint.solvers.groups.seats import GroupSeats


@dataclass(frozen=True)
class GroupLast:
    """The last batch: where the thresholds sat, and what came out."""

    problem: Problem
    wheres: tuple[Where, ...]
    seats: GroupSeats
    held: GroupHeld
    share: Tensor | float
    main: Tensor | None = None

    @cached_property
    def status(self) -> str:
        """The first trouble, or *held*."""
        with quiet(np):
            return self._trouble() or "held"

    def _trouble(self) -> str:
        if self.main is not None and not self.main.isfinite().all():
            return "undefined: the main loss has no finite gradient"
        solver = self.seats.solver
        tables = solver.cells.tables(self.seats.picks)
        for name in ("positives", "negatives"):
            if getattr(tables[()], name) == 0:
                return f"no {name} in the batch"
        missing = [w for i, w in enumerate(self.wheres) if i not in self.seats.present]
        if missing:
            return f"no examples of {describe_slice(missing[0])} in the batch"
        for target in solver.asked.targets:
            hold, value = hold_of(target), float(target.expression.of(tables))
            gap = hold.gap(value, target.level)
            close = max(hold.tolerance, solver.asked.slack(target))
            if not gap <= close and hold.sense != "at":
                return f"infeasible (gap {gap:.2g}): {target} is not met, it is {value:.4g}"
        for target, step in solver.asked.coarse:
            return f"too coarse: one example of a group changes `{target}` by {step:.2g}"
        if not self.held.soft.isfinite():
            return f"undefined: {self.problem.objective} is 0/0 in the batch"
        return ""

    def raise_if_not_held(self) -> None:
        """For ``strict=True``: every trouble is an error."""
        if self.status != "held":
            raise ValueError(
                f"Cannot hold `{self.problem}` on this batch: {self.status}. Use larger batches, "
                "pool scores over batches with memory=, or drop strict=True."
            )

    def stats(self) -> dict[str, Any]:
        """Plain numbers, thresholds and rates by group."""
        with quiet(np):
            tables = self.seats.solver.cells.tables(self.seats.picks)
            hard = float(self.problem.objective.of(tables))
            rates = {
                str(target.expression): float(target.expression.of(tables))
                for target in self.seats.solver.asked.targets
            }
        names = [key_of(self.wheres[i]) for i in self.seats.present]
        equations = map(str, self.seats.equations)
        return {
            "status": self.status,
            "threshold": dict(zip(names, self.seats.threshold.tolist(), strict=True)),
            "held_rates": rates,
            "soft_objective": float(self.held.soft),
            "hard_objective": hard,
            "multipliers": dict(zip(equations, self.held.multipliers.tolist(), strict=True)),
            "coverage_multipliers": dict(zip(names, self.held.rests.tolist(), strict=True)),
            "share": float(self.share),
        }
