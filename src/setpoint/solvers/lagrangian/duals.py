"""Multipliers: what a broken target costs, and how that price moves.

Gaps are signed so that a positive one raises the price: of a bound by how much it is broken, of a
setpoint ``rate - level``. The price of a bound never falls below zero, that of a setpoint may.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.axes.scan import Hold
from setpoint.thresholds import State

LARGEST = 1e6
"""Prices stop here: a diverging run stays finite, and says so."""


class Additive(State):
    """Gradient ascent, projected: ``max(0, multiplier + rate * gap)`` (external regret)."""

    values: Tensor
    _flexible = ("values",)

    def __init__(self, targets: list[Hold]) -> None:
        super().__init__()
        self.signed = [hold.sense == "at" for hold in targets]
        self.register_buffer("values", torch.zeros(len(targets), 1, 1, dtype=torch.float64))

    def prices(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The weight of the objective ``[c, m]`` and the multipliers ``[t, c, m]``."""
        values = self.values.to(like).expand(len(self.signed), *like.shape)
        return torch.ones_like(like), values

    def update(self, gaps: Tensor, rate: float) -> None:
        """Move the prices of gaps ``[t, c, m]``; a gap that is no number moves nothing."""
        moved = self.values.to(gaps) + rate * torch.nan_to_num(gaps, posinf=0.0, neginf=0.0)
        floors = gaps.new_tensor([-LARGEST if signed else 0.0 for signed in self.signed])
        self.values = moved.clamp(max=LARGEST).maximum(floors[:, None, None])


class Swap(State):
    """A distribution over the objective and the targets, without swap regret.

    Cotter, Jiang, Sridharan (2019), algorithm 2: a matrix with positive columns that sum to one;
    the prices are its stationary distribution. Entries grow by ``exp(rate * gap * price)``. A
    setpoint is two bounds.
    """

    logarithms: Tensor
    _flexible = ("logarithms",)

    def __init__(self, targets: list[Hold]) -> None:
        super().__init__()
        self.signed = [hold.sense == "at" for hold in targets]
        size = 1 + len(targets) + sum(self.signed)
        start = torch.zeros(1, 1, size, size, dtype=torch.float64)
        self.register_buffer("logarithms", start.log_softmax(-2))

    def _shares(self, like: Tensor) -> Tensor:
        """The stationary distribution ``[c, m, 1 + bounds]``."""
        matrix = self.logarithms.to(like).exp()
        one = torch.ones_like(matrix[..., 0])
        inflow = torch.eye(matrix.shape[-1]).to(matrix) - matrix
        shares: Tensor = torch.linalg.solve(inflow + 1.0, one)
        return shares.expand(*like.shape, shares.shape[-1])

    def prices(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The weight of the objective ``[c, m]`` and the multipliers ``[t, c, m]``."""
        first, *rest = self._shares(like).unbind(-1)
        prices = []
        for signed in self.signed:
            price = rest.pop(0)
            prices.append(price - rest.pop(0) if signed else price)
        return first, torch.stack(prices) if prices else like.new_zeros(0, *like.shape)

    def update(self, gaps: Tensor, rate: float) -> None:
        """Move the prices of gaps ``[t, c, m]``; a gap that is no number moves nothing."""
        gaps = torch.nan_to_num(gaps, posinf=0.0, neginf=0.0)
        payoffs = [torch.zeros_like(gaps[0]) if len(gaps) else gaps.new_zeros(1, 1)]
        for gap, signed in zip(gaps, self.signed, strict=True):
            payoffs += [gap, -gap] if signed else [gap]
        payoff = torch.stack(payoffs, -1)
        gain = payoff[..., :, None] * self._shares(payoff[..., 0])[..., None, :]
        self.logarithms = (self.logarithms.to(gain) + rate * gain).log_softmax(-2)
