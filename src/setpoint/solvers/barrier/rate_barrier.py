"""A problem of rates by the barrier: soft rates at a fixed threshold, true ones for their values.

Here the threshold stays where it is and the model moves the scores, so that the rates are ordinary
losses: the gradient of a bound is that of its soft rate, its value is the rate itself. It stands
beside :class:`setpoint.Implicit`, where the threshold follows the scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import number
from setpoint._checks import share as share_between
from setpoint.axes import read_sample
from setpoint.axes.arrays import Floats, quiet
from setpoint.axes.everyone import PlainSoft, soft_counts
from setpoint.axes.sample import exact
from setpoint.axes.soft_counts import Form
from setpoint.distributed import workers
from setpoint.losses import attach, exact_type, example_weights, labelled
from setpoint.losses.log_likelihood import Loss
from setpoint.problems import PER_GROUP, GoalLike
from setpoint.rates import Bound, Expression, Tables
from setpoint.solvers.accumulate import Accumulated
from setpoint.solvers.barrier.barrier import Barrier
from setpoint.solvers.barrier.constraints import Constraint, at_least, at_most, equal_to
from setpoint.solvers.base import BatchCriterion, check_problem, check_soft_step, learns
from setpoint.solvers.closed_form import gradient_like
from setpoint.solvers.main_loss import check_main, main_loss, mix, score_gradient
from setpoint.steps import Sigmoid, Step


class RateBarrier(BatchCriterion):
    """A criterion for a problem of rates: ``criterion(model(x), y).backward()``.

    Decisions are ``score > threshold``, in training and afterwards. The value is the objective's
    soft rate (negated when it is maximized); the gradient is that of the dynamic barrier. On
    several ranks it averages gradients itself, as the model's wrapper does: :meth:`attach` it.

    Args:
        problem: What is wanted: bounds and setpoints, one threshold for all.
        params: The parameters to train, such as ``model.parameters()``.
        threshold: Where scores are cut.
        main: The loss that shapes features: ``"focal"``, ``"cross_entropy"`` or any callable.
        share: The share of the main loss in the objective, by its gradient on the scores.
        step: The soft step that counts are made differentiable with.
        barrier: A :class:`setpoint.Barrier` with other settings, instead of ``params``.

    Examples:
        >>> from setpoint import Problem, RateBarrier, fnr, fpr
        >>> model = torch.nn.Linear(3, 1)
        >>> problem = Problem(minimize=fnr, subject_to=fpr <= 0.1)
        >>> criterion = RateBarrier(problem, model.parameters())
        >>> x, y = torch.randn(64, 3), torch.arange(64) % 2
        >>> criterion(model(x), y).backward()
        >>> sorted(criterion.stats())[:3]
        ['binding', 'kkt_score', 'largest_multiplier']
    """

    def __init__(
        self,
        problem: GoalLike,
        params: Iterable[Tensor] | None = None,
        *,
        threshold: float = 0.0,
        main: str | Loss = "focal",
        share: float = 0.3,
        step: Step = Sigmoid(),  # noqa: B008 (frozen)
        barrier: Barrier | None = None,
    ) -> None:
        super().__init__()
        self.problem = problem = check_problem(problem, "RateBarrier")
        if problem.swept is not None or problem.thresholds == PER_GROUP:
            raise NotImplementedError(
                f"RateBarrier cuts all scores at one fixed threshold; `{problem}` has several. "
                "Train it with Implicit, or write one bound for each."
            )
        self.step = check_soft_step(step)
        if (params is None) == (barrier is None):
            raise TypeError("RateBarrier takes the model's parameters, or barrier=, not both.")
        self.threshold = number(threshold, "threshold")
        self.main = check_main(main, "everyone")
        self.share = share_between(share, "share")
        self.barrier = Barrier(params) if barrier is None else barrier  # type: ignore[arg-type]
        self._slices = problem.slices

    def forward(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Any = None
    ) -> Tensor:
        """The loss of a batch; the arguments are those of :class:`setpoint.Implicit`."""
        if scores.numel() == 0:
            return scores.sum()
        labels, weights = labelled(scores, labels, weights)
        if weights is not None:
            weights = example_weights(weights, scores)
        batch = read_sample(self._slices, scores, labels, weights, groups)
        at = np.full((len(batch.scores), 1), self.threshold)
        with quiet():
            soft = PlainSoft(soft_counts(batch, batch, at, self.step))
            rate, slopes = soft_rate(self.problem.objective, soft)
        sign = -1.0 if self.problem.maximize else 1.0
        value = torch.tensor(sign * rate, dtype=exact_type(scores), device=scores.device)
        if not (self.training and learns(scores)):
            return value
        slopes = sign * slopes
        if self.share:
            main = exact(score_gradient(main_loss(self.main), scores, labels, weights))
            main = main.reshape(len(scores), -1).T
            with quiet():
                slopes, _ = mix(main, slopes, self.share)
            if not np.isfinite(slopes).all():  # all scores so far from the threshold: no soft rate
                slopes = main * self.share
        objective = attach(scores, value, gradient_like(scores, slopes))
        tables = batch.tables_at(at)
        held = [self._hold(target, soft, tables, scores) for target in self.problem.points[0]]
        if not held:
            return objective
        return self.barrier.loss(objective, subject_to=held)

    def _hold(self, target: Any, soft: PlainSoft, tables: Tables, scores: Tensor) -> Constraint:
        """The bound of a rate: the true value (0/0 keeps it), with the gradient of the soft one."""
        with quiet():
            _, slopes = soft_rate(target.expression, soft)
            true = float(np.mean(target.expression.of(tables)))
        value = torch.tensor(true if isfinite(true) else target.level, dtype=torch.float64)
        loss = attach(scores, value.to(scores.device), gradient_like(scores, slopes))
        name = str(target.expression)
        if not isinstance(target, Bound):
            return equal_to(loss, target.level, name=name)
        return (at_most if target.sense == "<=" else at_least)(loss, target.level, name=name)

    def accumulate(self, count: int) -> Accumulated:
        """Not possible: the multipliers need gradients by the weights before the backward pass."""
        raise NotImplementedError(
            "RateBarrier differentiates by the weights to find its multipliers, so it needs the "
            "graph of the whole batch: call criterion(torch.cat([model(x) for x in parts]), y)."
        )

    def _alone(self) -> bool:
        if self.reduction in ("sum", "none") and workers(self._group) > 1:
            raise ValueError(
                f"RateBarrier averages gradients over ranks; reduction={self.reduction!r} cannot "
                "be: attach the wrapped model, or say 'mean'."
            )
        self.barrier.average_over(self._group)
        return super()._alone()

    @property
    def status(self) -> str:
        """How the last batch went; see :meth:`setpoint.Barrier.report`."""
        return self.barrier.status

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers, for any logger."""
        return dict(self.barrier.report())

    def __repr__(self) -> str:
        options = {"threshold": self.threshold, "main": self.main, "share": self.share}
        listed = ", ".join(f"{key}={value!r}" for key, value in options.items())
        return f"{type(self).__name__}({self.problem}, {listed}, {self.step!r}, {self.barrier!r})"


def soft_rate(rate: Expression, soft: PlainSoft) -> tuple[float, Floats]:
    """A soft rate, the mean over outputs, and its gradient on the scores ``[c, n]``.

    0/0 counts as zero with a zero gradient: such a batch says nothing about the rate.
    """
    values, by_count = Form(rate, soft.counts.whole.slices)(soft)
    value, gradient = float(np.mean(values)), soft.pull(by_count) / len(soft.totals)
    if isfinite(value + float(gradient.sum())):
        return value, gradient
    return 0.0, np.zeros_like(gradient)
