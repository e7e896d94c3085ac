"""Losses for the area under the ROC curve, whole or over a range of false positive rates.

Meng et al., *Differentiable optimization of generalized nondecomposable functions using linear
programs* (2021), equation 1. The program has one variable and one constraint per pair of a positive
and a negative, and no two of them share anything: its value is a sum over pairs.

The loss of a pair depends on how far the positive is above the negative, ``d = f_i - f_j``:
``max(0, 1 - d / margin)`` for the hinge, the same but at most 1 for the ramp. In the order of the
scores the negatives within ``margin`` of a positive are neighbours, so cumulative sums give their
number and the sum of their scores: the cost is that of a sort.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from setpoint._checks import positive, share
from setpoint.losses.base import Ranked, ValueAndGradient, batch_loss, from_zero

PairSurrogate = Literal["hinge", "ramp"]


def auc_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: PairSurrogate = "hinge",
) -> Tensor:
    """An upper bound on one minus the area under the ROC curve, in ``n log n``.

    The mean over pairs of ``max(0, 1 - (f_i - f_j) / margin)``.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        margin: How far, in units of the scores, a positive has to be above a negative before the
            pair costs nothing.
        surrogate: ``"hinge"`` is convex and has a gradient on every pair that is misranked or
            close. ``"ramp"``, as published, costs at most 1 per pair and has a gradient only on
            pairs ranked right by less than the margin: with a small margin that is almost none.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.5, 0.0], requires_grad=True)
        >>> loss = auc_loss(scores, torch.tensor([1, 1, 0]))
        >>> loss.backward()
        >>> loss.item(), scores.grad.tolist()
        (0.25, [0.0, -0.5, 0.5])
    """
    margin, surrogate = positive(margin, "margin"), checked_surrogate(surrogate)

    def function(scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        return pair_loss(Ranked.of(scores, positives, negatives), margin, surrogate)

    return batch_loss(function, scores, labels, weights)


def partial_auc_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    fpr: tuple[float, float],
    weights: Tensor | None = None,
    margin: float = 1.0,
) -> Tensor:
    """An upper bound on one minus the mean true positive rate over a range of false ones.

    The mean hinge over the pairs of a positive with one of the negatives ranked within the range:
    for ``fpr=(0, 0.05)`` the 5 % with the highest scores. For a range from 0 it is convex.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        fpr: The range of false positive rates, ``(low, high)``. Fewer than one negative is fine:
            a negative that an end of the range cuts through counts in part.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        margin: As in :func:`auc_loss`.
    """
    margin = positive(margin, "margin")
    low, high = checked_range(fpr)

    def function(scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        ranked = Ranked.of(scores, positives, negatives)
        return pair_loss(ranked.within(low, high), margin)

    return batch_loss(function, scores, labels, weights)


def pair_loss(
    ranked: Ranked, margin: float, surrogate: PairSurrogate = "hinge"
) -> ValueAndGradient:
    """The mean loss over pairs, ``[c]``, and its gradient on the scores, ``[c, n]``."""
    p, n = ranked.positives, ranked.negatives
    first = ranked.after(ranked.scores - margin)  # negatives from here on are within the margin
    last = ranked.block_starts() if surrogate == "ramp" else None  # from here on not below
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
    """For a positive at each score: its loss, and the weight of negatives with a gradient."""
    count, total = from_zero(ranked.negatives), from_zero(ranked.negatives * ranked.scores)
    if last is None:
        sloped, losses = count[..., -1:].expand_as(first), total[..., -1:].expand_as(first)
    else:
        sloped, losses = count.gather(-1, last), total.gather(-1, last)
    sloped, losses = sloped - count.gather(-1, first), losses - total.gather(-1, first)
    losses.addcmul_(margin - ranked.scores, sloped).div_(margin)
    if last is not None:  # negatives that are not below cost 1 each
        losses.add_(count[..., -1:]).sub_(count.gather(-1, last))
    return losses, sloped


def _by_negative(p: Tensor, first: Tensor, last: Tensor | None) -> Tensor:
    """For a negative at each rank: the weight of positives it has a gradient with.

    Counted by the intervals of ranks that the positives use, so that both sides of a pair get the
    same gradient, ties included: a positive is added where its interval begins and removed at its
    end.
    """
    steps = p.new_zeros(*p.shape[:-1], p.shape[-1] + 1).scatter_add_(-1, first, p)
    if last is not None:
        steps.scatter_add_(-1, last, -p)
    return steps.cumsum(-1)[..., :-1]


def checked_range(fpr: object) -> tuple[float, float]:
    """The range as two floats; raises unless they are shares, the smaller first."""
    if not isinstance(fpr, (tuple, list)) or len(fpr) != 2:
        raise TypeError(f"fpr must be a range such as (0, 0.05); got {fpr!r}.")
    low, high = (share(end, "An end of the fpr range") for end in fpr)
    if low >= high:
        raise ValueError(f"The fpr range goes from low to high; got ({low:g}, {high:g}).")
    return low, high


def checked_surrogate(surrogate: object) -> PairSurrogate:
    """The surrogate's name; raises for any other."""
    if surrogate == "hinge":
        return "hinge"
    if surrogate == "ramp":
        return "ramp"
    raise ValueError(f"surrogate must be 'hinge' or 'ramp'; got {surrogate!r}.")
