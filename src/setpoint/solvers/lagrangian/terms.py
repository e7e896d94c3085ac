"""The terms of a Lagrangian as functions of counts: objective, gaps, and their slopes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint.axes.scan import Hold
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.held import gradient_of, tables_of
from setpoint.steps import Hard
from setpoint.thresholds import Reading


@dataclass(frozen=True)
class Terms:
    """The objective, to be minimized, ``[c, m]``, the gaps ``[t, c, m]``, and both by the counts.

    Gaps are signed: positive where a price has to rise.
    """

    objective: Tensor
    gaps: Tensor
    by_count: Tensor
    gaps_by_count: Tensor

    def priced(self, weight: Tensor, prices: Tensor) -> tuple[Tensor, Tensor]:
        """The Lagrangian at every threshold ``[c, m]``; its mean over them by the counts."""
        value = weight * self.objective + (prices * self.gaps).sum(0)
        pulls = weight[..., None] * self.by_count + (prices[..., None] * self.gaps_by_count).sum(0)
        return value, pulls / value.shape[1]


def terms_at(
    problem: Problem,
    targets: list[Hold],
    slices: tuple[Where, ...],
    counts: Tensor,
    around: Tensor,
    totals: Tensor,
) -> Terms:
    """The tangents, at the counts ``around``, of the objective and of the gaps."""
    tables = tables_of(around, totals, slices)
    signs = [-1.0 if problem.maximize else 1.0, *(_turn(hold) for hold in targets)]
    values, pulls = [], []
    for sign, expression in zip(
        signs, (problem.objective, *(hold.expression for hold in targets)), strict=True
    ):
        pull = gradient_of(expression, around, totals, slices)
        value = torch.as_tensor(expression.of(tables)).to(counts).expand(counts.shape[:2])
        values.append(sign * (value + (pull * (counts - around)).sum(-1)))
        pulls.append(sign * pull)
    gaps = torch.stack(values)[1:] - _levels(targets, counts)
    return Terms(values[0], gaps, pulls[0], torch.stack(pulls)[1:])


def true_gaps(targets: list[Hold], slices: tuple[Where, ...], reading: Reading) -> Tensor:
    """The gaps in hard counts, ``[t, c, m]``; NaN for 0/0."""
    hard = replace(reading, step=Hard(), _kernels=[])
    tables = tables_of(hard.counts()[0], hard.whole.totals, slices)
    rates = [_turn(hold) * torch.as_tensor(hold.expression.of(tables)) for hold in targets]
    at: Tensor = reading.at
    if not rates:
        return at.new_zeros(0, *at.shape)
    return torch.stack([r.expand(at.shape) for r in rates]) - _levels(targets, at)


def _turn(hold: Hold) -> float:
    return -1.0 if hold.sense == ">=" else 1.0


def _levels(targets: list[Hold], like: Tensor) -> Tensor:
    """What the gaps are measured from, ``[t, 1, m]``."""
    if not targets:
        return like.new_zeros(0, 1, 1)
    return like.new_tensor([[_turn(h) * level for level in h.levels] for h in targets])[:, None]
