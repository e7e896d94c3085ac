"""The Lagrangian of one batch: objective, gaps and gradients, and slack variables for ratios.

A ratio ``N / D`` of a batch is noisy, and its mean over batches is not the ratio of the whole. With
slack variables for its parts (Narasimhan, Cotter, Gupta, 2019) only sums remain: the player who
owns them answers best with the running means, and the others see the ratio through its tangent
there, ``s + (N - s D) / D_mean`` with ``s`` the running ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from setpoint.axes import PlainOutcome, SoftCounts, gradient_of, tables_of
from setpoint.axes.arrays import Bools, Floats, quiet
from setpoint.axes.sample import exact
from setpoint.axes.scan import Hold, Placement
from setpoint.problems import Problem
from setpoint.rates import Tables
from setpoint.solvers.memory import State


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
        self, counts: Floats, totals: Floats, sound: Bools, keep: bool
    ) -> tuple[Floats, Floats]:
        """The running counts ``[c, m, k]`` and totals ``[c, k]``, this batch included.

        Batches that lack a class (not ``sound``) leave them as they are.
        """
        if self.rate == 1:
            return counts, totals
        size = totals[:, :2].sum(-1)[:, None]
        size = size + (size == 0)
        shares, whole = counts / size[..., None], totals / size
        if self.counts.shape == counts.shape:
            pace = self.rate * sound[:, None]
            before = exact(self.counts), exact(self.totals)
            shares = before[0] + pace[..., None] * (shares - before[0])
            whole = before[1] + pace * (whole - before[1])
        if keep:
            self.counts = torch.from_numpy(shares).to(self.counts.device)
            self.totals = torch.from_numpy(whole).to(self.totals.device)
        return shares * size[..., None], whole * size


@dataclass(frozen=True)
class LagrangianTerms:
    """The objective, to be minimized, ``[c, m]``, the gaps ``[t, c, m]``, and both by the counts.

    Gaps are signed: positive where a price has to rise.
    """

    objective: Floats
    gaps: Floats
    by_count: Floats
    gaps_by_count: Floats

    def priced(
        self, problem: Problem, counts: SoftCounts, weight: Floats, prices: Floats
    ) -> tuple[PlainOutcome, Floats]:
        """The Lagrangian with prices ``[t, c, m]``: the batch, and its slopes by the counts.

        Both are those of the mean over thresholds.
        """
        value = weight * self.objective + (prices * self.gaps).sum(0)
        pulls = weight[..., None] * self.by_count + (prices[..., None] * self.gaps_by_count).sum(0)
        by_count = pulls / value.shape[1]
        gradient = counts.pull(by_count)
        sound = (counts.whole.totals > 0).all(-1) & np.isfinite(value.sum(-1) + gradient.sum(-1))
        at, rates = counts.at, -self.objective if problem.maximize else self.objective
        numbers = value.mean(-1), gradient, sound, at, at
        return PlainOutcome(*numbers, problem, counts, Placement(at, at, []), rates), by_count


def terms_at(
    problem: Problem, targets: list[Hold], counts: Floats, around: Floats, totals: Floats
) -> LagrangianTerms:
    """The tangents, at the counts ``around``, of the objective and of the gaps."""
    tables = tables_of(around, totals, problem.slices)
    signs = [-1.0 if problem.maximize else 1.0, *map(_turn, targets)]
    values, pulls = [], []
    for sign, expression in zip(
        signs, (problem.objective, *(hold.expression for hold in targets)), strict=True
    ):
        pull = gradient_of(expression, around, tables, problem.slices)
        value = np.broadcast_to(expression.of(tables), counts.shape[:2])
        values.append(sign * (value + (pull * (counts - around)).sum(-1)))
        pulls.append(sign * pull)
    levels = [_turn(hold) * np.array(hold.levels) for hold in targets]
    gaps = [value - level for value, level in zip(values[1:], levels, strict=True)]
    return LagrangianTerms(
        values[0], _stacked(gaps, values[0]), pulls[0], _stacked(pulls[1:], pulls[0])
    )


def true_gaps(targets: list[Hold], tables: Tables, like: Floats) -> Floats:
    """The gaps in true counts, ``[t, c, m]`` for thresholds ``like``; NaN for 0/0."""
    with quiet():
        gaps = [_turn(hold) * (hold.expression.of(tables) - hold.levels) for hold in targets]
    return _stacked([np.broadcast_to(gap, like.shape) for gap in gaps], like)


def _turn(hold: Hold) -> float:
    return -1.0 if hold.sense == ">=" else 1.0


def _stacked(arrays: list[Floats], like: Floats) -> Floats:
    """Arrays shaped ``like`` one, in one; there may be none."""
    return np.array(arrays).reshape(len(arrays), *like.shape)
