"""Losses that are means over examples: cross-entropy and focal, with gradients in closed form."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from setpoint.steps import Softplus, Values


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
    scores: Values, labels: Values, weights: Values | None = None, *, gamma: float = 2.0
) -> Values:
    """``d focal / d scores`` in closed form, in numpy or torch as the scores are.

    With ``p`` the probability given to the true label, the derivative by the logit of that label
    is ``(1 - p)^gamma (gamma p log p - (1 - p))``.
    """
    signs = 2.0 * (labels > 0) - 1
    logits = signs * scores
    log_right, wrong = -Softplus().value(-logits), _logistic(-logits)
    slopes = wrong**gamma * (gamma * (1 - wrong) * log_right - wrong)
    return signs * slopes * _shares(slopes, weights)


def cross_entropy_gradient(scores: Values, labels: Values, weights: Values | None = None) -> Values:
    """``d cross_entropy / d scores`` in closed form: the probability minus the label."""
    slopes = _logistic(scores)
    slopes -= labels
    slopes *= _shares(slopes, weights)
    return slopes


GRADIENTS = {focal: focal_gradient, cross_entropy: cross_entropy_gradient}


def _logistic(scores: Values) -> Values:
    """``1 / (1 + exp(-scores))``; in numpy an exponential may overflow, which does no harm."""
    if isinstance(scores, Tensor):
        return scores.sigmoid()
    odds = np.negative(scores)
    np.exp(odds, out=odds)
    odds += 1.0
    return np.reciprocal(odds, out=odds)


def _log_likelihood(scores: Tensor, labels: Tensor) -> Tensor:
    signs = 2 * labels.to(scores.dtype) - 1
    return logsigmoid(signs * scores)


def _mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    return losses.mean() if weights is None else (losses * _shares(losses, weights)).sum()


def _shares(losses: Values, weights: Values | None) -> Values:
    """The weight of each example's loss in the mean."""
    count = prod(losses.shape)
    if weights is None:
        return 1 / count
    weights = weights if weights.ndim == losses.ndim else weights.reshape(len(losses), -1)
    weights = weights.to(losses.dtype) if isinstance(weights, Tensor) else weights
    total = weights.sum() * (count / prod(weights.shape))
    return weights / (total + (total == 0))
