"""Losses for the area under the ROC curve, whole or over a range of false positive rates.

Meng et al., *Differentiable optimization of generalized nondecomposable functions using linear
programs* (2021), equation 1. The program has one variable and one constraint for each pair, and
they do not touch each other: its solution is a sum over pairs that sorting gives exactly.
"""

from __future__ import annotations

from torch import Tensor

from setpoint._checks import positive, share
from setpoint.solvers.program.inputs import Measured, batch_loss
from setpoint.solvers.program.pairs import Surrogate, pair_loss
from setpoint.solvers.program.ranked import Ranked


def auc_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: Surrogate = "hinge",
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

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
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

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
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


def checked_surrogate(surrogate: object) -> Surrogate:
    """One of the two names."""
    if surrogate == "hinge":
        return "hinge"
    if surrogate == "ramp":
        return "ramp"
    raise ValueError(f"surrogate must be 'hinge' or 'ramp'; got {surrogate!r}.")
