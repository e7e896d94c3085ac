"""Losses that judge every example by itself: what people train with today."""

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
    wrong = -torch.expm1(log_right)
    return _mean(-(wrong**gamma) * log_right, weights)


MAIN_LOSSES = {"focal": focal, "cross_entropy": cross_entropy}


def _log_likelihood(scores: Tensor, labels: Tensor) -> Tensor:
    signs = 2 * labels.to(scores.dtype) - 1
    return logsigmoid(signs * scores)


def _mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return losses.mean()
    if weights.ndim < losses.ndim:
        weights = weights[:, None]
    weights = weights.to(losses.dtype).expand_as(losses)
    total = weights.sum()
    return (weights * losses).sum() / torch.where(total > 0, total, 1.0)
