"""How multipliers and thresholds move with the batches, and what is kept of them."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.problems import Problem
from setpoint.problems.scan import Cuts, Hold
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.lagrangian.duals import Additive, Swap
from setpoint.solvers.lagrangian.log import Log
from setpoint.solvers.lagrangian.moving import Moving
from setpoint.solvers.lagrangian.priced import Priced
from setpoint.steps import Step
from setpoint.thresholds import Reading, Sample, State


class Advancing(BatchCriterion, State):
    """The mechanics of :class:`setpoint.Lagrangian` that a user need not see."""

    step_count: Tensor
    problem: Problem
    step: Step
    dual_rate: float
    duals: Additive | Swap
    moving: Moving
    log: Log
    _targets: list[Hold]

    def _read(self, batch: Sample, cuts: Cuts, reach: Tensor) -> Reading:
        """The batch as seen from the thresholds."""
        width = self.step.width_of(reach)
        width = (width + (width == 0))[:, None].expand(-1, len(self.problem.points))
        at = self.moving.at(self.problem, self._targets, cuts, width)
        return Reading(self.step, at, width, batch, batch)

    def _advance(self, found: Priced, reach: Tensor) -> None:
        """A step was taken: move thresholds down the Lagrangian, multipliers up their gaps."""
        gaps = torch.where(found.sound[:, None], found.gaps, 0.0)
        self.moving.descend(found.reading.at, found.towards(), reach)
        self.log.add(torch.cat([found.prices.reshape(-1), gaps.reshape(-1)]))
        if self._targets:
            self.duals.update(gaps, self.dual_rate)
        self.step_count.add_(1)

    def __repr__(self) -> str:
        options = ("dual_rate", "proxy", "regret", "threshold", "threshold_rate", "slack_rate")
        listed = ", ".join(f"{name}={getattr(self, name)!r}" for name in (*options, "step"))
        return f"{type(self).__name__}({self.problem}, {listed})"
