"""Sums over all pairs of a positive and a negative, without the pairs.

The loss of a pair depends on how far the positive is above the negative, ``d = f_i - f_j``:
``max(0, 1 - d / margin)`` for the hinge, the same but at most 1 for the ramp. Once scores are
sorted, the negatives within ``margin`` of a positive are a stretch of neighbours; running sums give
their number and the sum of their scores. Sorting is all the work there is.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from setpoint.solvers.program.inputs import Measured
from setpoint.solvers.program.ranked import Ranked, from_zero

Surrogate = Literal["hinge", "ramp"]


def pair_loss(ranked: Ranked, margin: float, surrogate: Surrogate = "hinge") -> Measured:
    """The mean loss of a pair, and its gradient on the scores."""
    p, n = ranked.positives, ranked.negatives
    first = ranked.after(ranked.scores - margin)  # from here on negatives are within the margin,
    last = ranked.block_starts() if surrogate == "ramp" else None  # and from here on not below
    losses, sloped = _by_positive(ranked, first, last, margin)
    value = losses.mul_(p).sum(-1)
    gradient = _by_negative(p, first, last).mul_(n)
    gradient -= sloped.mul_(p)
    pairs = p.sum(-1) * n.sum(-1)
    pairs = pairs + (pairs == 0)
    return value / pairs, ranked.unsorted(gradient.div_(margin * pairs[..., None]))


def _by_positive(
    ranked: Ranked, first: Tensor, last: Tensor | None, margin: float
) -> tuple[Tensor, Tensor]:
    """For a positive at each score: its loss, and how many negatives are on the slope."""
    count, total = from_zero(ranked.negatives), from_zero(ranked.negatives * ranked.scores)
    if last is None:
        sloped, losses = count[..., -1:].expand_as(first), total[..., -1:].expand_as(first)
    else:
        sloped, losses = count.gather(-1, last), total.gather(-1, last)
    sloped, losses = sloped - count.gather(-1, first), losses - total.gather(-1, first)
    losses.addcmul_(margin - ranked.scores, sloped).div_(margin)
    if last is not None:  # those that are not below cost 1 each
        losses.add_(count[..., -1:]).sub_(count.gather(-1, last))
    return losses, sloped


def _by_negative(p: Tensor, first: Tensor, last: Tensor | None) -> Tensor:
    """For a negative at each place: how many positives have it on their slope.

    Counted by the same stretches as seen from the positives, so that the two sides of a pair get
    the same pull, ties included: positives come in where their stretch begins and leave at its end.
    """
    steps = p.new_zeros(*p.shape[:-1], p.shape[-1] + 1).scatter_add_(-1, first, p)
    if last is not None:
        steps.scatter_add_(-1, last, -p)
    return steps.cumsum(-1)[..., :-1]
