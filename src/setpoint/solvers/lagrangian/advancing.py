"""How multipliers and thresholds move with the batches, and what is kept of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.axes.scan import Hold
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.adding import Adding
from setpoint.solvers.lagrangian.duals import Additive, Swap
from setpoint.solvers.lagrangian.log import Log
from setpoint.solvers.lagrangian.moving import Moving
from setpoint.solvers.lagrangian.priced import Priced
from setpoint.solvers.lagrangian.summed import CountSums
from setpoint.solvers.mix import example_weights
from setpoint.steps import Step
from setpoint.thresholds import Reading, Sample, State, read, spread


class Advancing(Adding[CountSums], State):
    """The mechanics of :class:`setpoint.Lagrangian` that a user need not see."""

    step_count: Tensor
    problem: Problem
    step: Step
    dual_rate: float
    duals: Additive | Swap
    moving: Moving
    log: Log
    _targets: list[Hold]
    _slices: tuple[Where, ...]

    def _adds(self) -> bool:
        """Whether thresholds and widths are known beforehand.

        Those that are learned, or follow the scores, are measured by the scores' spread. That is
        robust by two quantiles, which no sum over ranks can tell.
        """
        return self.moving.fixed is not None and self.step.temperature is not None

    def _own(
        self, scores: Tensor, labels: Any, *, weights: Any = None, groups: Any = None
    ) -> CountSums:
        return CountSums.of(self._reading(self._sample(scores, labels, weights, groups))[0])

    def _empty(self, scores: Tensor) -> bool:
        """Whether nobody is there, on any rank."""
        if self._shared is None:
            return scores.numel() == 0
        rows, *_ = self._shared[1]
        return bool(rows == 0)

    def _read(
        self, scores: Tensor, labels: Any, weights: Any, groups: Any
    ) -> tuple[Reading, Tensor]:
        """The batch of all ranks as seen from the thresholds, and how far its scores spread."""
        if self._shared is not None:
            own, totals = self._shared
            return own.of_all(totals), torch.ones_like(own.reading.at[:, 0])
        return self._reading(self._sample(scores, labels, weights, groups))

    def _sample(self, scores: Tensor, labels: Any, weights: Any, groups: Any) -> Sample:
        if weights is not None:
            weights = example_weights(weights, scores)
        return read(self._slices, scores, labels, weights, groups)

    def _reading(self, batch: Sample) -> tuple[Reading, Tensor]:
        """These rows as seen from the thresholds, and how far their scores spread."""
        cuts, reach = None, torch.ones_like(batch.totals[:, 0])
        if not self._adds():
            cuts = batch.cuts(self._slices)
            with quiet(cuts.xp):
                reach = torch.as_tensor(spread(cuts))
        width = self.step.width_of(reach)
        width = (width + (width == 0))[:, None].expand(-1, len(self.problem.points))
        at = self.moving.at(self.problem, self._targets, cuts, width)
        return Reading(self.step, at, width, batch, batch), reach

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
