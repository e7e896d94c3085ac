"""Losses for the area under the ROC curve, whole or over a range of false positive rates.

Meng et al., *Differentiable optimization of generalized nondecomposable functions using linear
programs* (2021), equation 1. The program has one variable and one constraint for each pair, and
they do not touch each other: its solution is a sum over pairs that sorting gives exactly.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from setpoint._checks import positive, share
from setpoint.losses.base import Ranked, ValueAndGradient, batch_loss, from_zero


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
        weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        margin: How far, in units of the scores, a positive has to be above a negative before the
            pair costs nothing.
        surrogate: ``"hinge"``, convex, pulls at every pair that is misranked or close; ``"ramp"``,
            as published, costs at most 1 a pair and pulls only at pairs ranked right by less than
            the margin: with a small margin that is almost none.

    Example:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.5, 0.0], requires_grad=True)
        >>> loss = auc_loss(scores, torch.tensor([1, 1, 0]))
        >>> loss.backward()
        >>> loss.item(), scores.grad.tolist()
        (0.25, [0.0, -0.5, 0.5])
    """
    margin, surrogate = positive(margin, "margin"), checked_surrogate(surrogate)

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        return pair_loss(Ranked.of(scores, positives, negatives), margin, surrogate)

    return batch_loss(measure, scores, labels, weights)


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
        weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        margin: As in :func:`auc_loss`.
    """
    margin = positive(margin, "margin")
    low, high = checked_range(fpr)

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        ranked = Ranked.of(scores, positives, negatives)
        return pair_loss(ranked.within(low, high), margin)

    return batch_loss(measure, scores, labels, weights)


def checked_range(fpr: object) -> tuple[float, float]:
    """Two shares, the smaller first."""
    if not isinstance(fpr, (tuple, list)) or len(fpr) != 2:
        raise TypeError(f"fpr must be a range such as (0, 0.05); got {fpr!r}.")
    low, high = (share(end, "An end of the fpr range") for end in fpr)
    if low >= high:
        raise ValueError(f"The fpr range goes from low to high; got ({low:g}, {high:g}).")
    return low, high


def checked_surrogate(surrogate: object) -> PairSurrogate:
    """One of the two names."""
    if surrogate == "hinge":
        return "hinge"
    if surrogate == "ramp":
        return "ramp"
    raise ValueError(f"surrogate must be 'hinge' or 'ramp'; got {surrogate!r}.")


# ------------------------------------------------------------------------------------------------
# Sums over all pairs of a positive and a negative, without the pairs.
#
# The loss of a pair depends on how far the positive is above the negative, ``d = f_i - f_j``:
# ``max(0, 1 - d / margin)`` for the hinge, the same but at most 1 for the ramp. Once scores are
# sorted, the negatives within ``margin`` of a positive are a stretch of neighbours; running sums
# give their number and the sum of their scores. Sorting is all the work there is.


PairSurrogate = Literal["hinge", "ramp"]


def pair_loss(
    ranked: Ranked, margin: float, surrogate: PairSurrogate = "hinge"
) -> ValueAndGradient:
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
