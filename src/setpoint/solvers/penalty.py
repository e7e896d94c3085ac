"""The body's loss of FICO's Method 2: the objective and a penalty, at yesterday's threshold.

At a threshold held on this very batch the gap is zero but for smoothing and says nothing; at the
one held a step ago it says how the scores have drifted since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.axes import PlainOutcome, SoftCounts, gradient_of, tables_of
from setpoint.axes.arrays import Floats
from setpoint.axes.scan import Hold
from setpoint.problems import PER_GROUP, Problem, refuse_classes, refuse_queries

PACE = 0.1
"""How fast the running multiplier follows that of the last batch."""


@dataclass(frozen=True)
class Penalty:
    """Train the body by ``objective + eta * gap``, the objective's rate and what is missed.

    Of a setpoint the gap is ``|rate - level|``, of a bound the part by which it is broken.

    Args:
        eta: The price of a gap. Without it, the running multiplier of the implicit problem: with
            a smaller one (1 at an fpr of 1 %, say) accepting everybody pays.
        everywhere: Train the head by it too, and not by the implicit loss: FICO's ablation.
    """

    eta: float | None = None
    everywhere: bool = False

    def __post_init__(self) -> None:
        if self.eta is not None:
            object.__setattr__(self, "eta", positive(self.eta, "eta"))


def check_problem(problem: object, body: object) -> None:
    """Raise for what :class:`setpoint.LastLayer` cannot express, and say who can."""
    if not isinstance(problem, Problem):
        raise TypeError(f"LastLayer takes a Problem, such as fnr_at_fpr(0.01); got {problem!r}.")
    refuse_queries(problem.query, "LastLayer")
    refuse_classes(problem, "LastLayer")
    if isinstance(body, Penalty) and problem.thresholds == PER_GROUP:
        raise NotImplementedError(
            f"Penalty knows one threshold for everyone; `{problem}` has one per group. "
            "LastLayer with body=CrossEntropy() trains it, and so does Implicit."
        )


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
    followed = torch.where(known > 0, known + PACE * (now - known), now)
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
