"""The body's loss of FICO's Method 2: the objective and a penalty, at yesterday's threshold.

At a threshold held on this very batch the gap is zero but for smoothing and says nothing; at the
one held a step ago it says how the scores have drifted since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.axes.scan import Hold
from setpoint.problems import PER_GROUP, Problem, refuse_classes, refuse_queries
from setpoint.rates import Where
from setpoint.solvers.held import Held, gradient_of, tables_of
from setpoint.solvers.schedule import Seat
from setpoint.thresholds import Reading, tensor_of

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


def running_multipliers(known: Tensor, held: Held, seat: Seat) -> Tensor:
    """``|multiplier|`` of every target ``[t, c, m]``, followed where it holds its threshold."""
    now = tensor_of(held.multiplier).abs()
    if not seat.holding:
        return now.new_zeros(0, *now.shape)
    holding = torch.stack([tensor_of(h).bool() & now.isfinite() for h in seat.holding])
    if known.shape != holding.shape:  # the first batch
        return torch.where(holding, now, 0.0)
    followed = torch.where(known > 0, known + PACE * (now - known), now)
    return torch.where(holding, followed, known)


def penalized(
    problem: Problem,
    targets: list[Hold],
    slices: tuple[Where, ...],
    reading: Reading,
    at: Tensor,
    eta: Tensor,
) -> tuple[Tensor, Tensor]:
    """The penalized objective of every output ``[c]``, and its gradient on the scores ``[c, n]``.

    Both are zero for an output where they are not finite or a class is missing.
    """
    reading = replace(reading, at=at, _kernels=[])
    counts, totals = reading.counts()[0], tensor_of(reading.whole.totals)
    tables, points = tables_of(counts, totals, slices), counts.shape[1]
    sign = -1.0 if problem.maximize else 1.0
    value = sign * torch.as_tensor(problem.objective.of(tables)).mean(-1)
    by_count = gradient_of(problem.objective, counts, totals, slices) * (sign / points)
    for hold, price in zip(targets, eta, strict=True):
        rate = torch.as_tensor(hold.expression.of(tables))
        excess = rate - rate.new_tensor(hold.levels)
        turn = -1.0 if hold.sense == ">=" else 1.0
        gap = abs(excess) if hold.sense == "at" else (turn * excess).clamp(min=0)
        slope = torch.sign(excess) if hold.sense == "at" else turn * (gap > 0)
        value = value + (price * gap).sum(-1)
        pulls = gradient_of(hold.expression, counts, totals, slices)
        by_count = by_count + (price * slope)[..., None] * pulls
    gradient = reading.pull(by_count)
    sound = (value + gradient.sum(-1)).isfinite() & (totals.amin(-1) > 0)
    return torch.where(sound, value, 0.0), torch.where(sound[:, None], gradient, 0.0)
