"""Sums over all pairs of a positive and a negative, without the pairs.

The loss of a pair depends on how far the positive is above the negative, ``d = f_i - f_j``:
``max(0, 1 - d / margin)`` for the hinge, the same but at most 1 for the ramp. Once scores are
sorted, the negatives within ``margin`` of a positive are a stretch of neighbours; running sums give
their number and the sum of their scores. Sorting is all the work there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from setpoint.solvers.program.inputs import Measured

Surrogate = Literal["hinge", "ramp"]


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
        ranked, order = scores.sort(dim=-1)
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
        above = total - running.gather(-1, after(self.scores, self.scores))
        block = total - running.gather(-1, before(self.scores, self.scores)) - above
        start, end = above.clamp(min=low * total), (above + block).clamp(max=high * total)
        part = (end - start).clamp_(min=0).div_(block + (block == 0))
        return replace(self, negatives=self.negatives * part)

    def unsorted(self, values: Tensor) -> Tensor:
        """Values of the ranked examples, back in the order of the batch."""
        return torch.empty_like(values).scatter_(-1, self.order, values)


def pair_loss(ranked: Ranked, margin: float, surrogate: Surrogate = "hinge") -> Measured:
    """The mean loss of a pair, and its gradient on the scores."""
    x, p, n = ranked.scores, ranked.positives, ranked.negatives
    first = after(x, x - margin)  # the negatives from here on are less than margin below
    last = before(x, x) if surrogate == "ramp" else None  # from here on they are not below at all
    value, beaten = _by_positive(x, n, first, last, margin)
    value = (value * p).sum(-1)
    gradient = _by_negative(p, first, last).mul_(n)
    gradient -= beaten.mul_(p)
    pairs = p.sum(-1) * n.sum(-1)
    pairs = pairs + (pairs == 0)
    return value / pairs, ranked.unsorted(gradient.div_(margin * pairs[..., None]))


def _by_positive(
    x: Tensor, n: Tensor, first: Tensor, last: Tensor | None, margin: float
) -> tuple[Tensor, Tensor]:
    """For a positive at each score: its loss, and how many negatives are on the slope."""
    count, total = from_zero(n), from_zero(n * x)
    if last is None:
        above = count.new_zeros(())
        sloped = count[..., -1:] - count.gather(-1, first)
        sums = total[..., -1:] - total.gather(-1, first)
    else:
        above = count[..., -1:] - count.gather(-1, last)  # they cost 1 each
        sloped = count.gather(-1, last) - count.gather(-1, first)
        sums = total.gather(-1, last) - total.gather(-1, first)
    return sums.addcmul_(margin - x, sloped).div_(margin).add_(above), sloped


def _by_negative(p: Tensor, first: Tensor, last: Tensor | None) -> Tensor:
    """For a negative at each place: how many positives have it on their slope.

    Counted by the same stretches as seen from the positives, so that the two sides of a pair get
    the same pull to the last bit, ties included.
    """
    count = from_zero(p)
    places = torch.arange(p.shape[-1], device=p.device).expand_as(first).contiguous()
    sloped = count.gather(-1, after(first, places))
    return sloped if last is None else sloped - count.gather(-1, after(last, places))


def from_zero(values: Tensor) -> Tensor:
    """Running sums that start with zero: one more than there are values."""
    sums = values.new_zeros(*values.shape[:-1], values.shape[-1] + 1)
    torch.cumsum(values, -1, out=sums[..., 1:])
    return sums


def before(ordered: Tensor, values: Tensor) -> Tensor:
    """How many of ``ordered`` are smaller than each value."""
    return torch.searchsorted(ordered, values)


def after(ordered: Tensor, values: Tensor) -> Tensor:
    """How many of ``ordered`` are at most each value."""
    return torch.searchsorted(ordered, values, right=True)
