"""Multipliers (Eban et al., 2017; Cotter, Jiang, Sridharan, 2019: the family of TFCO).

``objective + sum multiplier * gap`` in soft counts for the weights; the multipliers climb the gaps,
soft ones, or true ones for the proxy-Lagrangian: the baseline that implicit thresholds must beat.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint._checks import share as share_between
from setpoint.axes import Sample, SoftCounts, read_sample, spread
from setpoint.axes.arrays import Floats, quiet
from setpoint.axes.sample import exact
from setpoint.axes.scan import Hold, holds, place
from setpoint.distributed import Reduction
from setpoint.losses import example_weights
from setpoint.problems import PER_GROUP, GoalLike, Problem
from setpoint.solvers.base import check_problem, check_soft_step
from setpoint.solvers.closed_form import ClosedForm, ExampleColumns, gradient_like
from setpoint.solvers.lagrangian.multipliers import (
    Additive,
    MultiplierLog,
    Swap,
    described,
    diverging,
    history_of,
)
from setpoint.solvers.lagrangian.terms import Slack, has_ratios, terms_at, true_gaps
from setpoint.solvers.main_loss import blended
from setpoint.solvers.memory import State
from setpoint.solvers.status import Snapshot
from setpoint.steps import Sigmoid, Step

_FARTHEST = 0.25
"""The farthest a threshold moves in a step, in spreads of the scores."""


class LearnedThresholds(State):
    """The thresholds of a Lagrangian, ``[c, m]``; they start at the first batch's exact ones.

    Args:
        fixed: Their fixed value, or None if they are learned.
        rate: How fast they are learned, in units free of the scores' scale.
    """

    values: Tensor
    _flexible = ("values",)

    def __init__(self, fixed: float | None, rate: float) -> None:
        super().__init__()
        self.fixed = fixed
        self.rate = rate
        self.register_buffer("values", torch.empty(0, dtype=torch.float64))

    def at(self, problem: Problem, targets: list[Hold], batch: Sample) -> Floats:
        """The present thresholds; in the first batch, the problem's exact ones."""
        shape = (len(batch.scores), len(problem.points))
        if self.fixed is not None:
            return np.full(shape, self.fixed)
        if self.values.shape == shape:
            return exact(self.values)
        return np.asarray(place(batch.cuts, problem, targets).marginal)

    def descend(self, at: Floats, slopes: Floats, reach: Floats) -> None:
        """Move down ``slopes`` [c, m], the derivatives of a mean over thresholds."""
        if self.fixed is None:
            unit = reach[:, None]
            step = self.rate * unit * slopes * at.shape[1]
            at = at - unit * step.clip(-_FARTHEST, _FARTHEST)
        self.values = torch.from_numpy(at.copy()).to(self.values.device)


class Lagrangian(ClosedForm):
    """A criterion with multipliers: ``criterion(model(x), y).backward()``.

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

    Examples:
        >>> from setpoint import Lagrangian, fnr_at_fpr
        >>> criterion = Lagrangian(fnr_at_fpr(0.25), threshold=0.0)
        >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.2, 0.1, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 0, 1, 0, 0, 0])).backward()
        >>> criterion.status
        'drifting (gap 0.5): fpr <= 0.25 is not met, it is 0.75'
        >>> 0 < criterion.stats()["multipliers"]["fpr <= 0.25"] < 1
        True
    """

    step_count: Tensor
    _options = (
        "dual_rate",
        "proxy",
        "regret",
        "threshold",
        "threshold_rate",
        "slack_rate",
        "step",
    )

    def __init__(
        self,
        problem: GoalLike,
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
        self.problem = problem = check_shared(problem, "Lagrangian")
        self.step = check_soft_step(step)
        if regret not in ("external", "swap"):
            raise ValueError(f"regret must be 'external' or 'swap'; got {regret!r}.")
        if regret == "swap" and not proxy:
            raise ValueError(
                'regret="swap" answers true counts: set proxy=True. With soft counts alone '
                "projected ascent is all that is needed."
            )
        self.dual_rate = positive(dual_rate, "dual_rate")
        self.proxy = bool(proxy)
        self.regret = regret
        self.threshold = None if threshold is None else number(threshold, "threshold")
        self.threshold_rate = positive(threshold_rate, "threshold_rate")
        self.slack_rate = share_between(slack_rate, "slack_rate")
        self._targets = holds(problem)
        self.duals = (Additive if regret == "external" else Swap)(self._targets)
        self.slack = Slack(self.slack_rate if has_ratios(problem) else 1.0)
        self.learned = LearnedThresholds(self.threshold, self.threshold_rate)
        self.log = MultiplierLog()
        self.register_buffer("step_count", torch.zeros((), dtype=torch.long))
        self._last: Snapshot | None = None
        self._gaps: Tensor | None = None

    def forward(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Any = None
    ) -> Tensor:
        """The loss of a batch; the arguments are those of :class:`setpoint.Implicit`."""
        return self.loss(scores, labels, ExampleColumns(weights, groups=groups))

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[float, Tensor]:
        """The loss of a batch and its gradient on the scores; in training, state changes."""
        counts, reach = self._read(scores, labels, columns.weights, columns.groups)
        at, batch, steps = counts.at, counts.batch, learns and self.training
        with quiet():
            soft, slopes = counts.counts()
            there = (batch.totals > 0).all(-1)
            around = self.slack.around(soft, batch.totals, there, steps)
            terms = terms_at(self.problem, self._targets, soft, *around)
            weight, prices = self.duals.prices(torch.from_numpy(at))
            outcome, by_count = terms.priced(self.problem, counts, exact(weight), exact(prices))
            sound = outcome.sound[:, None]
            by_threshold = np.where(sound, (by_count * slopes).sum(-1), 0.0)
            value, gradient = blended(outcome, None, 0.0)
        gaps = true_gaps(self._targets, batch.tables_at(at), at) if self.proxy else terms.gaps
        self._gaps = torch.from_numpy(gaps)
        self._last = Snapshot(self.problem, "", outcome, 0.0)
        if steps:
            self.learned.descend(at, by_threshold, reach)
            self._climb(prices, torch.from_numpy(np.where(sound, gaps, 0.0)))
        return value, gradient_like(scores, gradient)

    def _climb(self, prices: Tensor, gaps: Tensor) -> None:
        """Move the multipliers up their gaps."""
        self.log.add(torch.cat([prices.reshape(-1), gaps.reshape(-1)]))
        if self._targets:
            self.duals.update(gaps, self.dual_rate)
        self.step_count.add_(1)

    @property
    def thresholds(self) -> Tensor:
        """Where scores are cut, ``[outputs, thresholds]``; empty before the first step."""
        return self.learned.values

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

    def note_undefined(self) -> None:
        """A compiled step had scores that are not finite."""
        self._last = Snapshot(self.problem, "", None, 0.0)

    def history(self) -> list[dict[str, Any]]:
        """Multipliers and gaps of the last 1,000 steps, oldest first."""
        return history_of(self.problem, *self.log.read())

    def _read(
        self, scores: Tensor, labels: Any, weights: Any, groups: Any
    ) -> tuple[SoftCounts, Floats]:
        """The batch around the thresholds, and the spread of its scores."""
        if weights is not None:
            weights = example_weights(weights, scores)
        batch = read_sample(self.problem.slices, scores, labels, weights, groups)
        with quiet():
            reach = spread(batch.scores, batch.weights)
        width = self.step.width_of(reach)[:, None]
        at = self.learned.at(self.problem, self._targets, batch)
        return SoftCounts(self.step, at, width + (width == 0), batch, batch), reach


def check_shared(problem: GoalLike, who: str) -> Problem:
    """``problem``, if its labels are binary and its thresholds the same for everyone."""
    checked = check_problem(problem, who)
    if checked.thresholds == PER_GROUP:
        raise NotImplementedError(
            f"{who} cuts everyone at the same threshold; `{problem}` has one per group. "
            "Implicit trains those; or bound the groups' rates at a shared threshold."
        )
    return checked
