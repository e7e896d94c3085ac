"""Losses for ratios of counts: the F score and the Jaccard index, in closed form.

A positive at ``f`` counts as found by at most ``min(1, f / margin)``, a negative as a false alarm
by at least ``max(0, 1 + f / margin)``: both on the safe side of the decision ``f > 0``. With their
sums T and F for the true counts, a ratio such as ``2 T / (P + T + F)`` is a bound on the true one,
and by the substitution of Charnes and Cooper a linear program (:func:`as_program`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.solvers.program.inputs import Measured, batch_loss


@dataclass(frozen=True)
class Ratio:
    """``top T / (fixed P + moving T + F)`` with P positives, T found and F false alarms."""

    top: float
    fixed: float
    moving: float


def f_ratio(beta: float) -> Ratio:
    """The F score: recall counts ``beta`` times as much as precision."""
    square = positive(beta, "beta") ** 2
    return Ratio(1 + square, square, 1)


JACCARD = Ratio(1, 1, 0)


def f_score_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    beta: float = 1.0,
    margin: float = 1.0,
    lift: bool = True,
) -> Tensor:
    """An upper bound on one minus the F score of the decisions ``score > 0``, in closed form.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        beta: How many times as much recall counts as precision.
        margin: How far from 0, in units of the scores, a decision has to be to be safe.
        lift: While the positives are on average below 0 the bound says nothing: it is 1, without a
            gradient, and training would never start. With ``lift`` the loss goes on to rise above
            1 there and pulls the positives up. Without, it is the program and nothing else.

    Example:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.5, -0.5], requires_grad=True)
        >>> loss = f_score_loss(scores, torch.tensor([1, 1, 0]))     # T = 1.5, F = 0.5, P = 2
        >>> loss.backward()
        >>> loss.item(), scores.grad.tolist()
        (0.25, [0.0, -0.3125, 0.1875])
    """
    return _ratio_loss(f_ratio(beta), scores, labels, weights, margin, lift)


def jaccard_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    lift: bool = True,
) -> Tensor:
    """An upper bound on one minus the Jaccard index (intersection over union) of ``score > 0``.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        margin: As in :func:`f_score_loss`.
        lift: As in :func:`f_score_loss`.
    """
    return _ratio_loss(JACCARD, scores, labels, weights, margin, lift)


def _ratio_loss(
    ratio: Ratio,
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    margin: float,
    lift: bool,
) -> Tensor:
    margin = positive(margin, "margin")

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
        u = scores / margin
        found, sure = (positives * u.clamp(max=1)).sum(-1), u >= 1
        alarms, safe = (negatives * (1 + u).clamp_(min=0)).sum(-1), u <= -1
        value, by_found, by_alarm = ratio_bound(ratio, positives.sum(-1), found, alarms, lift)
        gradient = torch.where(sure, 0.0, positives) * by_found[:, None]
        gradient += torch.where(safe, 0.0, negatives) * by_alarm[:, None]
        return value, gradient.div_(margin)

    return batch_loss(measure, scores, labels, weights)


def ratio_bound(
    ratio: Ratio, positives: Tensor, found: Tensor, alarms: Tensor, lift: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """One minus the ratio, and its slopes by ``found`` and by ``alarms``; ``[c]`` each.

    A bound below zero found is none: the ratio is then 0, and with ``lift`` the loss goes on with
    the slope it has at zero without false alarms.
    """
    real = found > 0
    seen = found.clamp(min=0)
    below = ratio.fixed * positives + ratio.moving * seen + alarms
    below = below + (below == 0)
    value = ratio.top * seen / below
    by_found = ratio.top * (below - ratio.moving * seen) / below**2
    steep = ratio.top / (ratio.fixed * positives + (positives == 0)) * lift
    loss = 1 - value - torch.where(real, 0.0, steep * found)
    return loss, -torch.where(real, by_found, steep), torch.where(real, value / below, 0.0)
