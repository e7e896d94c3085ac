"""Two losses as one number: what everybody does, to be compared with.

* linear: ``(1 - w) f + w g``. It finds only points where the front bends towards the origin.
* Tchebycheff: a smooth maximum of the two scaled losses (Lin et al., 2024, "Smooth Tchebycheff
  Scalarization"); it can find any point, but where it lands is decided by the shape of the front.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SMOOTHNESS = 0.05
"""Of the smooth maximum, in units of the range between the ends."""


@dataclass(frozen=True)
class Linear:
    """``(1 - w) f / s + w g / t`` with scales ``s`` and ``t``."""

    weight: float
    scales: tuple[float, float] = (1.0, 1.0)
    status: str = "weighted"

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """One backward pass."""
        (s, t), w = self.scales, self.weight
        torch.autograd.backward((1 - w) * minimized / s + w * held / t)


@dataclass(frozen=True)
class Tchebycheff:
    """A smooth maximum of the weighted distances to the best value of each loss."""

    weight: float
    best: tuple[float, float]
    scales: tuple[float, float]
    status: str = "weighted"

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """One backward pass."""
        (s, t), w = self.scales, self.weight
        first = (1 - w) * (minimized - self.best[0]) / s
        second = w * (held - self.best[1]) / t
        both = torch.stack([first, second]) / SMOOTHNESS
        torch.autograd.backward(SMOOTHNESS * both.logsumexp(0))
