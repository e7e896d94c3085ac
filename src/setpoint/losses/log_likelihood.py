"""Cross-entropy and focal loss, with their gradients in closed form: binary, classes, queries.

Criteria train with them, or mix them with a loss of their own (:mod:`setpoint.solvers.main_loss`).
For two classes the losses of classes are the binary ones of the difference of the two scores.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid, one_hot

from setpoint.axes.arrays import Floats, quiet
from setpoint.axes.query_data import QueryBatch, QuerySample
from setpoint.steps import Softplus, Values

Loss = Callable[..., Tensor]
"""Called as ``loss(scores, labels)``, with ``weights=`` if there are any; returns one number."""


def cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Binary cross-entropy of logits, the weighted mean over examples and outputs.

    Examples:
        >>> cross_entropy(torch.zeros(3), torch.tensor([1, 0, 0]))
        tensor(0.6931)
    """
    return _mean(-_log_likelihood(scores, labels), weights)


def focal(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, gamma: float = 2.0
) -> Tensor:
    """Focal loss: cross-entropy in which an example counts by how wrong it still is."""
    return _focal(_log_likelihood(scores, labels), weights, gamma)


def class_cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of logits ``[n, K]`` and classes ``[n]``, the weighted mean over examples."""
    return _mean(-_log_right(scores, labels), weights)


def class_focal(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, gamma: float = 2.0
) -> Tensor:
    """Focal loss of logits ``[n, K]`` and classes ``[n]``."""
    return _focal(_log_right(scores, labels), weights, gamma)


def cross_entropy_gradient(scores: Values, labels: Values, weights: Values | None = None) -> Values:
    """``d cross_entropy / d scores``, in numpy or torch: the probability minus the label."""
    if isinstance(scores, Tensor):
        slopes = scores.sigmoid()
    else:  # an exponential may overflow, which does no harm
        slopes = np.negative(scores)
        np.exp(slopes, out=slopes)
        slopes += 1.0
        np.reciprocal(slopes, out=slopes)
    slopes -= labels
    slopes *= 1 / prod(slopes.shape) if weights is None else _mean_shares(slopes, weights)
    return slopes


def focal_gradient(
    scores: Values, labels: Values, weights: Values | None = None, *, gamma: float = 2.0
) -> Values:
    """``d focal / d scores``, in numpy or torch.

    With ``p`` the probability given to the true label, the derivative by the logit of that label
    is ``(1 - p)^gamma (gamma p log p - (1 - p))``.
    """
    signs = 2.0 * (labels > 0) - 1
    logits = signs * scores
    log_right, wrong = -Softplus().value(-logits), Softplus().slope(-logits)
    slopes = wrong**gamma * (gamma * (1 - wrong) * log_right - wrong)
    return signs * slopes * _mean_shares(slopes, weights)


def class_cross_entropy_gradient(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None
) -> Tensor:
    """``d class_cross_entropy / d scores``, ``[n, K]``: probabilities minus the truth."""
    return _by_scores(scores, labels, torch.ones_like(scores[:, 0]), weights)


def class_focal_gradient(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, gamma: float = 2.0
) -> Tensor:
    """``d class_focal / d scores``, ``[n, K]``.

    With ``p`` the probability of the true class the loss changes with its logarithm by
    ``-(1 - p)^gamma + gamma p (1 - p)^(gamma - 1) log p``.
    """
    log_right = _log_right(scores, labels)
    wrong = -torch.expm1(log_right)
    slopes = wrong**gamma - gamma * log_right.exp() * wrong ** (gamma - 1) * log_right
    return _by_scores(scores, labels, slopes, weights)


BINARY_LOSSES: dict[str, Loss] = {"focal": focal, "cross_entropy": cross_entropy}
CLASS_LOSSES: dict[str, Loss] = {"focal": class_focal, "cross_entropy": class_cross_entropy}
GRADIENTS: dict[Loss, Callable[..., Any]] = {
    focal: focal_gradient,
    cross_entropy: cross_entropy_gradient,
    class_focal: class_focal_gradient,
    class_cross_entropy: class_cross_entropy_gradient,
}
"""The gradients on the scores that are known in closed form."""


def listwise_gradient(batch: QueryBatch, judged: int) -> Floats:
    """``d loss / d score``, ``[n]``, of the mean over the ``judged`` queries of a batch.

    Pointwise losses ask every score for a probability, and so for an offset between queries that no
    ranking needs; the listwise loss knows none. That of a query is the mean over its relevant
    documents ``i`` of ``log(1 + sum_j exp(s_j - s_i))`` over the others ``j``: a relevant document
    competes with those that are not, and never with another relevant one. (ListNet's softmax over
    all documents, Cao et al. 2007, would want all relevant scores to be equal.) A weight is a
    number of copies.
    """
    gradient = np.zeros(batch.sample.scores.shape[1])
    with quiet():
        for _, rows, sample in batch.parts():
            gradient[rows] = _listwise(sample)
    return gradient / max(judged, 1)


def _listwise(sample: QuerySample) -> Floats:
    queries, (relevant, others) = sample.queries, sample.by_column[:2]
    positives, negatives = sample.totals[:, :2].T
    rivals = np.where(others > 0, sample.scores, -np.inf)
    highest = np.where(negatives > 0, queries.extreme(np.maximum, rivals), 0.0)
    odds = np.exp(rivals - queries.each(highest)) * others
    against = queries.total(odds)  # sum_j exp(s_j - highest): at least one of them is 1
    against = np.where(negatives > 0, against, 1.0)
    # the share of a relevant document that its rivals take: sum_j / (exp(s_i) + sum_j)
    lost = 1 / (1 + np.exp(sample.scores - queries.each(np.log(against) + highest)))
    lost *= relevant * queries.each(np.where(sample.both_classes, 1 / positives, 0.0))
    taken = queries.total(lost) / against
    return np.asarray(odds * queries.each(taken) - lost)


def _log_likelihood(scores: Tensor, labels: Tensor) -> Tensor:
    """The logarithm of the probability given to a binary label."""
    signs = 2 * labels.to(scores.dtype) - 1
    return logsigmoid(signs * scores)


def _log_right(scores: Tensor, labels: Tensor) -> Tensor:
    """The logarithm of the probability given to the true class."""
    return log_softmax(scores, -1).gather(1, labels[:, None])[:, 0]


def _focal(log_right: Tensor, weights: Tensor | None, gamma: float) -> Tensor:
    return _mean(-((-torch.expm1(log_right)) ** gamma) * log_right, weights)


def _mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    shares: Tensor | float = _mean_shares(losses, weights)
    return (losses * shares).sum()  # not the sum over a count: that may overflow


def _mean_shares(losses: Values, weights: Values | None) -> Values:
    """The weight of each example's loss in the mean."""
    count = prod(losses.shape)
    if weights is None:
        return 1 / max(count, 1)
    weights = weights if weights.ndim == losses.ndim else weights.reshape(len(losses), -1)
    weights = weights.to(losses.dtype) if isinstance(weights, Tensor) else weights
    total = weights.sum() * (count / prod(weights.shape))
    return weights / (total + (total == 0))


def _by_scores(scores: Tensor, labels: Tensor, slopes: Tensor, weights: Tensor | None) -> Tensor:
    """Slopes by minus the log-probability of the true class, as those of the mean by the scores."""
    wrong = log_softmax(scores, -1).exp() - one_hot(labels, scores.shape[1]).to(scores.dtype)
    shares: Tensor | float = _mean_shares(slopes, weights)
    return (slopes * shares)[:, None] * wrong
