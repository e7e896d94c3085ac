"""The body's loss of FICO's Method 2: the objective and a penalty, at the last step's threshold.

At a threshold that was held on this very batch the gap is zero, except for smoothing; at the one of
the last step it says how far the scores have drifted since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.axes import PlainOutcome, SoftCounts, gradient_of, tables_of
from setpoint.axes.arrays import Floats
from setpoint.axes.scan import Hold, holds
from setpoint.losses import exact_type
from setpoint.problems import Problem
from setpoint.solvers.base import BatchCriterion
from setpoint.solvers.compiled import ClosedForm, ExampleColumns
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.memory import State

_PACE = 0.1
"""How fast the running multiplier follows that of the last batch."""


@dataclass(frozen=True)
class Penalty:
    """Train the body by ``objective + eta * gap``, the objective's rate and what is missed.

    Of a setpoint the gap is ``|rate - level|``, of a bound the part by which it is broken.

    Args:
        eta: The price of a gap. Without it, the running multiplier of the implicit problem: with
            a smaller one (1 at an fpr of 1 %, say) it pays to accept all examples.
        everywhere: Train the head by it too, and not by the implicit loss: FICO's ablation.
    """

    eta: float | None = None
    everywhere: bool = False

    def __post_init__(self) -> None:
        if self.eta is not None:
            object.__setattr__(self, "eta", positive(self.eta, "eta"))


class PenalizedLoss(ClosedForm, BatchCriterion, State):
    """The loss of :class:`Penalty` on the batch that the implicit loss of the head has just seen.

    Args:
        implicit: The criterion of the head; its thresholds are used one step later.
        by: The penalty.
    """

    held_at: Tensor  # the thresholds of the last step, [c, m]
    multipliers: Tensor  # running ones, [t, c, m]
    _flexible = ("held_at", "multipliers")
    _gathers = False

    def __init__(self, implicit: Implicit, by: Penalty) -> None:
        super().__init__()
        self._implicit = (implicit,)  # in a tuple: it is a part of the criterion, not of this loss
        self._targets = holds(implicit.problem)
        self.by = by
        self.register_buffer("held_at", torch.empty(0, dtype=torch.float64))
        self.register_buffer("multipliers", torch.empty(0, dtype=torch.float64))
        self.register_number()

    def forward(self, scores: Tensor, held: Tensor) -> Tensor:
        """The penalized loss, with its gradient on the scores; ``held`` is the head's loss."""
        return self.loss(scores, held)

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor, Tensor]:
        """The loss and its gradient on the scores of the batch that was held."""
        outcome = self._implicit[0].outcome
        assert isinstance(outcome, PlainOutcome)
        now = torch.from_numpy(outcome.placed.marginal).to(self.held_at.device)
        eta = running_multipliers(self.multipliers, outcome)
        known = self.held_at.shape == now.shape
        before = self.held_at.to(now) if known else torch.full_like(now, torch.nan)
        at = torch.where(before.isnan(), now, before)
        if self.training and learns:
            both = torch.from_numpy(outcome.counts.whole.totals.min(-1, keepdims=True) > 0)
            self.multipliers = eta
            self.held_at = torch.where(both.to(now.device), now, before)
        if self.by.eta is not None:
            eta = torch.full_like(eta, self.by.eta / now.shape[1])
        problem = self._implicit[0].problem
        value, gradient = penalized(
            problem, self._targets, outcome.counts, at.cpu().numpy(), eta.cpu().numpy()
        )
        loss = scores.new_tensor(value.mean(), dtype=exact_type(scores))
        slopes = torch.from_numpy((gradient / len(gradient)).T.reshape(scores.shape))
        return loss, slopes.to(scores.device)


def running_multipliers(known: Tensor, outcome: PlainOutcome) -> Tensor:
    """``|multiplier|`` of every target ``[t, c, m]``, followed where it holds its threshold."""
    assert outcome.held is not None
    now = torch.from_numpy(abs(outcome.held.multipliers[..., 0])).to(known.device)
    if not outcome.placed.holding:
        return now.new_zeros(0, *now.shape)
    holding = torch.from_numpy(np.stack(outcome.placed.holding) > 0).to(known.device)
    holding = holding & now.isfinite()
    if known.shape != holding.shape:  # the first batch
        return torch.where(holding, now, 0.0)
    followed = torch.where(known > 0, known + _PACE * (now - known), now)
    return torch.where(holding, followed, known)


def penalized(
    problem: Problem, targets: list[Hold], counts: SoftCounts, at: Floats, eta: Floats
) -> tuple[Floats, Floats]:
    """The penalized objective of every output ``[c]``, and its gradient on the scores ``[c, n]``.

    Both are zero for an output where they are not finite or a class is missing.

    Args:
        problem: What is wanted.
        targets: What its thresholds have to hold.
        counts: The batch, read around other thresholds.
        at: The thresholds, ``[c, m]``.
        eta: The price of every target's gap, ``[t, c, m]``.
    """
    counts, slices = replace(counts, at=at, _kernels=[]), problem.slices
    sign = -1.0 if problem.maximize else 1.0
    with np.errstate(all="ignore"):
        accepted, totals = counts.counts()[0], counts.whole.totals
        tables = tables_of(accepted, totals, slices)
        value = sign * problem.objective.of(tables).mean(-1)
        by_count = gradient_of(problem.objective, accepted, tables, slices)
        by_count = by_count * (sign / accepted.shape[1])
        for hold, price in zip(targets, eta, strict=True):
            excess = hold.expression.of(tables) - np.array(hold.levels)
            turn = -1.0 if hold.sense == ">=" else 1.0
            gap = abs(excess) if hold.sense == "at" else (turn * excess).clip(min=0)
            slope = np.sign(excess) if hold.sense == "at" else turn * (gap > 0)
            value = value + (price * gap).sum(-1)
            pulls = gradient_of(hold.expression, accepted, tables, slices)
            by_count = by_count + (price * slope)[..., None] * pulls
        gradient = counts.pull(by_count)
        sound = np.isfinite(value + gradient.sum(-1)) & (totals.min(-1) > 0)
    return np.where(sound, value, 0.0), np.where(sound[:, None], gradient, 0.0)
