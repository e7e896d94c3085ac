"""The Lagrangian of one batch: objective, gaps and gradients, and slack variables for ratios.

A ratio ``N / D`` of a batch is noisy, and its mean over batches is not the ratio of the whole. With
slack variables for its parts (Narasimhan, Cotter, Gupta, 2019) only sums remain: the player who
owns them answers best with the running means, and the others see the ratio through its tangent
there, ``s + (N - s D) / D_mean`` with ``s`` the running ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint.axes import SoftCounts, gradient_of, tables_of
from setpoint.axes.scan import Hold
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.memory import State
from setpoint.steps import Hard


def has_ratios(problem: Problem) -> bool:
    """Whether a denominator of the problem moves with the threshold."""
    return not all(rate.is_steady for rate in problem.rates)


class Slack(State):
    """Running means of counts and class totals, as shares of a batch."""

    counts: Tensor
    totals: Tensor
    _flexible = ("counts", "totals")

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("counts", torch.empty(0, dtype=torch.float64))
        self.register_buffer("totals", torch.empty(0, dtype=torch.float64))

    def around(
        self, counts: Tensor, totals: Tensor, sound: Tensor, keep: bool
    ) -> tuple[Tensor, Tensor]:
        """The running counts ``[c, m, k]`` and totals ``[c, k]``, this batch included.

        Batches that lack a class (not ``sound``) leave them as they are.
        """
        if self.rate == 1:
            return counts, totals
        size = totals[:, :2].sum(-1)[:, None]
        size = size + (size == 0)
        shares, whole = counts / size[..., None], totals / size
        if self.counts.shape == counts.shape:
            pace = self.rate * sound.to(counts)[:, None]
            shares = self.counts.to(shares).lerp(shares, pace[..., None])
            whole = self.totals.to(whole).lerp(whole, pace)
        if keep:
            self.counts, self.totals = shares, whole
        return shares * size[..., None], whole * size


@dataclass(frozen=True)
class LagrangianTerms:
    """The objective, to be minimized, ``[c, m]``, the gaps ``[t, c, m]``, and both by the counts.

    Gaps are signed: positive where a price has to rise.
    """

    objective: Tensor
    gaps: Tensor
    by_count: Tensor
    gaps_by_count: Tensor

    def weighted(self, weight: Tensor, prices: Tensor) -> tuple[Tensor, Tensor]:
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
) -> LagrangianTerms:
    """The tangents, at the counts ``around``, of the objective and of the gaps."""
    tables = tables_of(around, totals, slices)
    signs = [-1.0 if problem.maximize else 1.0, *(_turn(hold) for hold in targets)]
    values, pulls = [], []
    for sign, expression in zip(
        signs, (problem.objective, *(hold.expression for hold in targets)), strict=True
    ):
        pull = gradient_of(expression, around, tables, slices)
        value = torch.as_tensor(expression.of(tables)).to(counts).expand(counts.shape[:2])
        values.append(sign * (value + (pull * (counts - around)).sum(-1)))
        pulls.append(sign * pull)
    gaps = torch.stack(values)[1:] - _levels(targets, counts)
    return LagrangianTerms(values[0], gaps, pulls[0], torch.stack(pulls)[1:])


def true_gaps(targets: list[Hold], slices: tuple[Where, ...], reading: SoftCounts) -> Tensor:
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
