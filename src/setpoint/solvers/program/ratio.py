"""A ratio of counts and what it is worth for bounds on the counts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import positive


@dataclass(frozen=True)
class Ratio:
    """``top T / (fixed P + moving T + F)`` with P positives, T of them found, F false alarms."""

    top: float
    fixed: float
    moving: float

    def of(self, positives: Tensor, seen: Tensor, alarms: Tensor) -> Tensor:
        """The ratio; ``seen`` is what is found, not negative."""
        return self.top * seen / self._below(positives, seen, alarms)

    def _below(self, positives: Tensor, seen: Tensor, alarms: Tensor) -> Tensor:
        below = self.fixed * positives + alarms
        below.add_(seen, alpha=self.moving)
        return below.add_(below == 0)

    def bound(
        self, positives: Tensor, found: Tensor, alarms: Tensor, *, lift: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One minus the ratio, and its slopes by ``found`` and by ``alarms``.

        Less than nothing found is no bound: the ratio is 0 there. With ``lift`` the loss then goes
        on to rise, by the slope it has at nothing found without false alarms.
        """
        real, seen = found > 0, found.clamp(min=0)
        ratio, below = (read(positives, seen, alarms) for read in (self.of, self._below))
        steep = lift * self.top / (self.fixed * positives + (positives == 0))
        loss = 1 - ratio - torch.where(real, 0.0, steep * found)
        by_found = self.top * (below - self.moving * seen) / below**2
        return loss, -torch.where(real, by_found, steep), ratio / below


def f_ratio(beta: float) -> Ratio:
    """The F score: recall counts ``beta`` times as much as precision."""
    square = positive(beta, "beta") ** 2
    return Ratio(1 + square, square, 1)


JACCARD = Ratio(1, 1, 0)
