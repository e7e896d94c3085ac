"""Losses as people write them by hand: a metric with probabilities for decisions, and class means.

The soft metrics are what a torchmetrics formula becomes when ``sigmoid(score)`` takes the place of
the decision: no threshold, no constraint, one number to maximize. All take scores ``[n]`` or
``[n, columns]`` and labels alike, and give the mean over columns.
"""

from torch import Tensor


def mean_difference(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean score of the negatives minus that of the positives.

    ``softplus(T z) = log 2 + T z / 2 + O(T^2)``: at the temperature of 0.001 that won most rows of
    the published experiments, ICO's loss is this one until scores reach the hundreds, whatever
    rate is held. Without an operating point in it, it is a baseline.
    """
    own = _weights(scores, weights)
    yes, no = own * labels, own * (1 - labels)
    return ((no * scores).sum(0) / _some(no) - (yes * scores).sum(0) / _some(yes)).mean()


def soft_f1(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """One minus F1 of probabilities."""
    tp, accepted, positives = _counts(scores, labels, weights)
    return (1 - 2 * tp / (accepted + positives)).mean()


def soft_precision_and_recall(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, recall_weight: float = 4.0
) -> Tensor:
    """One minus F of probabilities with recall so many times as important (F4 by default).

    What is left to those who want high recall and write the loss by hand.
    """
    tp, accepted, positives = _counts(scores, labels, weights)
    b = recall_weight**2
    return (1 - (1 + b) * tp / (accepted + b * positives)).mean()


def _counts(scores: Tensor, labels: Tensor, weights: Tensor | None) -> tuple[Tensor, ...]:
    """True positives, accepted and positives, in probabilities."""
    own, p = _weights(scores, weights), scores.sigmoid()
    return (own * labels * p).sum(0), (own * p).sum(0), (own * labels).sum(0)


def _weights(scores: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return scores.new_ones(scores.shape)
    return weights.to(scores).reshape(len(scores), *[1] * (scores.ndim - 1)).expand_as(scores)


def _some(weights: Tensor) -> Tensor:
    """Their sum; 1 for a class that is not there."""
    total = weights.sum(0)
    return total + (total == 0)
