"""Thresholds that descend with the weights, or stay where they were put."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.axes.cuts import Cuts
from setpoint.axes.scan import Hold, place
from setpoint.problems import Problem
from setpoint.thresholds import State

FARTHEST = 0.25
"""The farthest a threshold moves in a step, in spreads of the scores."""


class Moving(State):
    """The thresholds of a criterion, ``[c, m]``; the first batch says where they start.

    Args:
        fixed: Where they stay, or None: they are learned.
        rate: How fast they are learned, in units free of the scores' scale.
    """

    values: Tensor
    _flexible = ("values",)

    def __init__(self, fixed: float | None, rate: float) -> None:
        super().__init__()
        self.fixed = fixed
        self.rate = rate
        self.register_buffer("values", torch.empty(0, dtype=torch.float64))

    def at(self, problem: Problem, targets: list[Hold], cuts: Cuts | None, like: Tensor) -> Tensor:
        """Where scores are cut now; at first, where the problem's exact thresholds are."""
        if self.fixed is not None:
            return torch.full_like(like, self.fixed)
        if self.values.shape == like.shape:
            return self.values.to(like)
        assert cuts is not None  # only fixed thresholds do without
        return torch.as_tensor(place(cuts, problem, targets).marginal)

    def descend(self, at: Tensor, slopes: Tensor, reach: Tensor) -> None:
        """Move down ``slopes`` [c, m], the derivatives of a mean over thresholds."""
        if self.fixed is None:
            unit = reach[:, None]
            step = self.rate * unit * slopes * at.shape[1]
            at = at - unit * step.clamp(-FARTHEST, FARTHEST)
        self.values = at.clone()
