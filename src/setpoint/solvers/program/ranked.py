"""Examples in the order of their scores, and stretches of neighbours among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setpoint.thresholds import in_numpy


@dataclass(frozen=True)
class Ranked:
    """Scores in ascending order with the weights of both classes, ``[c, n]``."""

    order: Tensor
    scores: Tensor
    positives: Tensor
    negatives: Tensor

    @classmethod
    def of(cls, scores: Tensor, positives: Tensor, negatives: Tensor) -> Ranked:
        """Sorted once; around their middle, so that sums of scores lose no digits to a shift."""
        if in_numpy(scores):  # a quarter of the time
            order = torch.from_numpy(np.argsort(scores.numpy(), axis=-1))
        else:
            order = scores.argsort(-1)
        ranked = scores.gather(-1, order)
        middle = ranked.shape[-1] // 2
        ranked -= ranked[..., middle : middle + 1].clone()
        return cls(order, ranked, positives.gather(-1, order), negatives.gather(-1, order))

    def within(self, low: float, high: float) -> Ranked:
        """Only the negatives ranked between two false positive rates, counted from the top.

        One that the end of the range cuts through counts in part. Equal scores share what their
        block is given, so the order of the examples does not matter.
        """
        running = from_zero(self.negatives)
        total = running[..., -1:]
        above = total - running.gather(-1, self.block_ends())
        below = total - running.gather(-1, self.block_starts())
        block = below - above
        part = below.clamp_(max=high * total) - above.clamp_(min=low * total)
        part.clamp_(min=0).div_(block + (block == 0))
        return replace(self, negatives=part.mul_(self.negatives))

    def after(self, values: Tensor) -> Tensor:
        """How many scores are at most each value."""
        if in_numpy(values) and len(values) == 1:  # half the time
            found = np.searchsorted(self.scores[0].numpy(), values[0].numpy(), side="right")
            return torch.from_numpy(found)[None]
        return torch.searchsorted(self.scores, values, right=True)

    def block_starts(self) -> Tensor:
        """For each score, how many are smaller."""
        places = torch.arange(self.scores.shape[-1], device=self.scores.device)
        fresh = torch.ones_like(self.scores, dtype=torch.bool)
        fresh[..., 1:] = self.scores[..., 1:] != self.scores[..., :-1]
        return torch.where(fresh, places, 0).cummax(-1).values

    def block_ends(self) -> Tensor:
        """For each score, how many are smaller or equal."""
        n = self.scores.shape[-1]
        places = torch.arange(1, n + 1, device=self.scores.device)
        final = torch.ones_like(self.scores, dtype=torch.bool)
        final[..., :-1] = self.scores[..., 1:] != self.scores[..., :-1]
        return torch.where(final, places, n).flip(-1).cummin(-1).values.flip(-1)

    def unsorted(self, values: Tensor) -> Tensor:
        """Values of the ranked examples, back in the order of the batch."""
        return torch.empty_like(values).scatter_(-1, self.order, values)


def from_zero(values: Tensor) -> Tensor:
    """Running sums that start with zero: one more than there are values."""
    return pad(values.cumsum(-1), (1, 0))
