"""Slack variables for ratios: precision and F are not sums over examples, their parts are.

A ratio ``N / D`` of a batch is noisy, and its mean over batches is not the ratio of the whole. With
slack variables for its parts (Narasimhan, Cotter, Gupta, 2019) only sums remain: the player who
owns them answers best with the running means, and the others see the ratio through its tangent
there, ``s + (N - s D) / D_mean`` with ``s`` the running ratio.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.problems import Problem
from setpoint.thresholds import State


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
