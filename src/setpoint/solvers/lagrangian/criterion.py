"""Multipliers (Eban et al., 2017; Cotter, Jiang, Sridharan, 2019: the family of TFCO).

``objective + sum multiplier * gap`` in soft counts for the weights; the multipliers climb the gaps,
soft ones, or true ones for the proxy-Lagrangian: the baseline that implicit thresholds must beat.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint._checks import share as share_between
from setpoint.axes.scan import holds
from setpoint.distributed import Reduction
from setpoint.problems import Problem
from setpoint.solvers.lagrangian.advancing import Advancing
from setpoint.solvers.lagrangian.checks import check
from setpoint.solvers.lagrangian.duals import Additive, Swap
from setpoint.solvers.lagrangian.log import Log
from setpoint.solvers.lagrangian.moving import Moving
from setpoint.solvers.lagrangian.priced import priced
from setpoint.solvers.lagrangian.report import described, diverging, history_of
from setpoint.solvers.lagrangian.slack import Slack, has_ratios
from setpoint.solvers.snapshot import Snapshot
from setpoint.steps import Sigmoid, Step


class Lagrangian(Advancing):
    """A criterion by multipliers: ``criterion(model(x), y).backward()``.

    The value is the Lagrangian in soft counts, the gradient is its own. Thresholds and multipliers
    are part of the criterion's state and move at every training step; the optimizer knows nothing
    of them. Afterwards take the exact threshold, ``problem.choose(scores, labels)``.

    Args:
        problem: What is wanted; bounds, setpoints and areas, several of them.
        dual_rate: How far multipliers move for a gap of 1.
        proxy: Let true counts move the multipliers, while soft ones train the weights.
        regret: ``"external"``, projected ascent; ``"swap"``, a stationary distribution over the
            objective and the targets (only with ``proxy``).
        threshold: Where scores are cut: a number, or None: it is learned, like the weights.
        threshold_rate: How fast it is learned, in units free of the scores' scale.
        slack_rate: For ratios (precision, F): the pace of their slack variables; 1 looks at the
            batch alone. Rates of whole classes need none.
        step: The soft step. Its width is in units of the scores by default: a model may sharpen
            it by growing.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Example:
        >>> from setpoint import Lagrangian, fnr_at_fpr
        >>> criterion = Lagrangian(fnr_at_fpr(0.25), threshold=0.0)
        >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.2, 0.1, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 0, 1, 0, 0, 0])).backward()
        >>> criterion.status
        'drifting (gap 0.5): fpr <= 0.25 is not met, it is 0.75'
        >>> 0 < criterion.stats()["multipliers"]["fpr <= 0.25"] < 1
        True
    """

    def __init__(
        self,
        problem: Problem,
        *,
        dual_rate: float = 0.3,
        proxy: bool = False,
        regret: Literal["external", "swap"] = "external",
        threshold: float | None = None,
        threshold_rate: float = 0.1,
        slack_rate: float = 0.1,
        step: Step = Sigmoid(temperature=1.0),  # noqa: B008 (frozen)
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__()
        self.reduction = reduction
        check(problem, step, regret, proxy)
        self.problem = problem
        self.dual_rate = positive(dual_rate, "dual_rate")
        self.proxy = bool(proxy)
        self.regret = regret
        self.threshold = None if threshold is None else number(threshold, "threshold")
        self.threshold_rate = positive(threshold_rate, "threshold_rate")
        self.slack_rate = share_between(slack_rate, "slack_rate")
        self.step = step
        self._targets, self._slices = holds(problem), problem.slices
        self.duals = (Additive if regret == "external" else Swap)(self._targets)
        self.slack = Slack(self.slack_rate if has_ratios(problem) else 1.0)
        self.moving = Moving(self.threshold, self.threshold_rate)
        self.log = Log()
        self.register_buffer("step_count", torch.zeros((), dtype=torch.long))
        self._last: Snapshot | None = None
        self._gaps: Tensor | None = None

    def forward(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Any = None
    ) -> Tensor:
        """The loss of a batch; the arguments are those of :class:`setpoint.Implicit`."""
        if self._empty(scores):
            return scores.sum()
        reading, reach = self._read(scores, labels, weights, groups)
        steps = torch.is_grad_enabled() and scores.requires_grad and self.training
        found = priced(
            self.problem,
            self._targets,
            self._slices,
            reading,
            self.slack,
            self.duals,
            proxy=self.proxy,
            steps=steps,
        )
        self._gaps, self._last = found.gaps, found.snapshot(self.problem, self._slices)
        if steps:
            self._advance(found, reach)
        return found.loss(scores)

    @property
    def thresholds(self) -> Tensor:
        """Where scores are cut, ``[outputs, thresholds]``; empty before the first step."""
        return self.moving.values

    @property
    def multipliers(self) -> Tensor:
        """The present price of every target, ``[targets, outputs, thresholds]``."""
        like = self.thresholds if self.thresholds.ndim == 2 else self.thresholds.new_zeros(1, 1)
        return self.duals.prices(like)[1]

    @property
    def status(self) -> str:
        """How the last batch went: *held*, *drifting*, *diverging*, or what is missing."""
        if self._last is None:
            return "not started"
        log = self.log.read()[1]
        return diverging(self.problem, self.multipliers, self._gaps, log) or self._last.status

    def stats(self) -> dict[str, Any]:
        """The last batch of all ranks in plain numbers, for any logger."""
        if self._last is None:
            return {"status": self.status}
        found = {**self._last.stats(), "status": self.status}
        del found["share"], found["multiplier"]
        return {**found, **described(self.problem, self.multipliers, self._gaps)}

    def history(self) -> list[dict[str, Any]]:
        """Multipliers and gaps of the last 1,000 steps, oldest first."""
        return history_of(self.problem, *self.log.read())
