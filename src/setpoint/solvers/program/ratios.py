"""Losses for ratios of counts: the F score and the Jaccard index, in closed form or by a scan.

A positive at ``f`` counts as found by at most ``min(1, f / margin)``, a negative as a false alarm
by at least ``max(0, 1 + f / margin)``: both on the safe side of the decision ``f > 0``. With their
sums T and F for the true counts, a ratio such as ``2 T / (P + T + F)`` is a bound on the true one,
and by the substitution of Charnes and Cooper a linear program (:func:`as_program`).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.solvers.program.best_threshold import at_best_threshold
from setpoint.solvers.program.inputs import Measured, batch_loss
from setpoint.solvers.program.ratio import JACCARD, Ratio, f_ratio

Threshold = float | Literal["best"]


def f_score_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    beta: float = 1.0,
    margin: float = 1.0,
    threshold: Threshold = 0.0,
    lift: bool = True,
) -> Tensor:
    """An upper bound on one minus the F score of the decisions ``score > threshold``.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        beta: How many times as much recall counts as precision.
        margin: How far from the threshold, in units of the scores, a decision has to be to be safe.
        threshold: Where decisions are made; ``"best"``: where this batch's bound is best. The loss
            then does not change when all scores are shifted.
        lift: While the positives are on average below the threshold the bound says nothing: it is
            1, without a gradient, and training would never start. With ``lift`` the loss goes on to
            rise above 1 there and pulls the positives up; without, it is the program and nothing
            else. At the best threshold there is no such place.

    Example:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.5, -0.5], requires_grad=True)
        >>> loss = f_score_loss(scores, torch.tensor([1, 1, 0]))     # T = 1.5, F = 0.5, P = 2
        >>> loss.backward()
        >>> loss.item(), scores.grad.tolist()
        (0.25, [0.0, -0.3125, 0.1875])
    """
    return ratio_loss(f_ratio(beta), scores, labels, weights, margin, threshold, lift)


def jaccard_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: Threshold = 0.0,
    lift: bool = True,
) -> Tensor:
    """An upper bound on one minus the Jaccard index (intersection over union).

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        margin: As in :func:`f_score_loss`.
        threshold: As in :func:`f_score_loss`.
        lift: As in :func:`f_score_loss`.
    """
    return ratio_loss(JACCARD, scores, labels, weights, margin, threshold, lift)


def ratio_loss(
    ratio: Ratio,
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    margin: float,
    threshold: Threshold,
    lift: bool,
) -> Tensor:
    """One minus any ratio of this form; see :func:`f_score_loss`."""
    margin, threshold = positive(margin, "margin"), checked_threshold(threshold)

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
        if threshold == "best":
            value, gradient = at_best_threshold(ratio, scores / margin, positives, negatives)
        else:
            u = (scores - threshold) / margin
            value, gradient = at_threshold(ratio, u, positives, negatives, lift)
        return value, gradient.div_(margin)

    return batch_loss(measure, scores, labels, weights)


def at_threshold(
    ratio: Ratio, u: Tensor, positives: Tensor, negatives: Tensor, lift: bool
) -> Measured:
    """The bound for decisions ``u > 0``, and its gradient by ``u``."""
    found = (positives * u.clamp(max=1)).sum(-1)
    alarms = (negatives * (1 + u).clamp_(min=0)).sum(-1)
    value, by_found, by_alarm = ratio.bound(positives.sum(-1), found, alarms, lift=lift)
    gradient = torch.where(u < 1, positives, 0.0).mul_(by_found[:, None])
    gradient += torch.where(u > -1, negatives, 0.0).mul_(by_alarm[:, None])
    return value, gradient


def checked_threshold(threshold: object) -> Threshold:
    """A number, or the word."""
    if isinstance(threshold, str):
        if threshold != "best":
            raise ValueError(f"threshold must be a number or 'best'; got {threshold!r}.")
        return "best"
    return number(threshold, "threshold")
