"""The main loss of :class:`setpoint.Implicit`, and the mix of its gradient with the implicit one.

The main loss shapes features and pulls examples that are far from the threshold; the implicit loss
moves them to the operating point. Their gradients on the scores are matched by the sum of their
absolute values, so the mix has no units and does not care about the scale of the scores.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from setpoint.axes.arrays import Floats
from setpoint.axes.axis import Outcome
from setpoint.axes.query_sample import QueryBatch, QuerySample
from setpoint.axes.sample import Sample, exact
from setpoint.batch import ScoredExamples
from setpoint.losses import exact_type
from setpoint.rates import Array
from setpoint.steps import Softplus, Values

Loss = Callable[..., Tensor]


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
    return signs * slopes * _mean_shares(slopes, weights)


def cross_entropy_gradient(scores: Values, labels: Values, weights: Values | None = None) -> Values:
    """``d cross_entropy / d scores`` in closed form: the probability minus the label."""
    slopes = _logistic(scores)
    slopes -= labels
    slopes *= 1 / prod(slopes.shape) if weights is None else _mean_shares(slopes, weights)
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


def main_loss(main: str | Loss) -> Loss:
    """A main loss by name, or the user's own callable."""
    if isinstance(main, str):
        if main not in MAIN_LOSSES:
            known = ", ".join(map(repr, MAIN_LOSSES))
            raise ValueError(f"main must be one of {known} or a callable; got {main!r}.")
        return MAIN_LOSSES[main]
    if not callable(main):
        raise TypeError(f"main must be the name of a loss or a callable; got {main!r}.")
    return main


def product(weights: Tensor | None, more: Tensor) -> Tensor:
    """Both; one may be ``[n]`` and the other ``[n, c]``."""
    if weights is None or weights.ndim == more.ndim:
        return more if weights is None else weights * more
    rows, whole = sorted((weights, more), key=lambda w: w.ndim)
    return rows[:, None] * whole


def score_gradient(loss: Loss, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """``d loss / d scores``, in the shape of the scores, without touching the network."""
    leaf = scores.detach().to(exact_type(scores))
    target = torch.as_tensor(labels, device=leaf.device)
    target = target if target.shape == leaf.shape else target.reshape(leaf.shape)
    for known, gradient_of in GRADIENTS.items():
        if loss is known:
            found: Tensor = gradient_of(leaf, target, weights)
            return found
    return _by_autograd(loss, leaf, target.to(leaf.dtype), weights)


def sample_gradient(
    main: str | Loss, batch: Sample, scores: Tensor, labels: Any, weights: Tensor | None
) -> Floats:
    """The gradient of a loss of binary outputs, by name or the user's own, ``[c, n]``."""
    if isinstance(main, str):
        own = None if weights is None else exact(weights)
        gradient_of = GRADIENTS[MAIN_LOSSES[main]]
        return np.asarray(gradient_of(batch.ranked.T, batch.positive.T, own).T)
    found = score_gradient(main, scores, labels, weights)
    return np.asarray(exact(found).reshape(-1, len(batch.scores)).T)


def value_of(loss: Loss, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """The loss, one number, with weights if there are any and it takes them."""
    if weights is None:
        value = loss(scores, labels)
    elif "weights" in inspect.signature(getattr(loss, "forward", loss)).parameters:
        value = loss(scores, labels, weights=weights)
    else:
        raise TypeError(
            f"The main loss {loss!r} takes no weights: give it a parameter `weights`, or train "
            'with main="cross_entropy".'
        )
    if value.ndim != 0:
        raise ValueError(
            f"The main loss must return one number; got the shape {tuple(value.shape)}. "
            'Use reduction="mean".'
        )
    return value


def mixed(outcome: Outcome, main: Floats | None, share: float) -> tuple[float, Floats]:
    """The value of a batch and its gradient on the scores, ``[c, n]``, both means over outputs.

    Outputs whose value or gradient is not finite count as 0 and have a gradient of zeros.
    """
    value, sound, slopes = outcome.value, outcome.sound, outcome.gradient
    if not sound.all():
        value = np.where(sound, value, 0.0)
    slopes = slopes / len(slopes) if main is None else mix(main, slopes, share)
    sound = sound & np.isfinite(slopes.sum(-1))  # no sum with an infinity or NaN is
    slopes = slopes if sound.all() else np.where(sound[:, None], slopes, 0.0)
    return float(value.sum()) / len(sound), slopes


def mix(main: Array, implicit: Array, share: Tensor | float) -> Array:
    """``share`` of the main gradient, the rest implicit at the same length; both ``[c, n]``.

    In numpy or torch.
    """
    length, own = (abs(x).sum(-1)[..., None] for x in (main, implicit))
    found = implicit * ((1 - share) * length / (own + (own == 0)))
    found += main * share
    return found


def _by_autograd(loss: Loss, leaf: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    leaf.requires_grad_()
    with torch.enable_grad():
        value = value_of(loss, leaf, labels, weights)
        if not value.requires_grad:
            raise ValueError(
                f"The main loss {loss!r} has no gradient on the scores. If the criterion is "
                'compiled, compile the model alone, or train with main="cross_entropy".'
            )
        (gradient,) = torch.autograd.grad(value, leaf)
    return gradient


# Several classes: for two they are the binary losses of the difference of the two scores.


def class_cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of logits ``[n, K]`` and classes ``[n]``, the weighted mean over examples."""
    return -(_log_right(scores, labels) * _class_mean_shares(scores, weights)).sum()


def class_focal(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, gamma: float = 2.0
) -> Tensor:
    """Focal loss: cross-entropy in which an example counts by how wrong it still is."""
    log_right = _log_right(scores, labels)
    wrong = -torch.expm1(log_right)
    return -(wrong**gamma * log_right * _class_mean_shares(scores, weights)).sum()


def cross_entropy_slopes(scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """``d class_cross_entropy / d scores``: probabilities minus the truth."""
    return _class_pull(
        scores, labels, torch.ones_like(scores[:, 0]) * _class_mean_shares(scores, weights)
    )


def focal_slopes(
    scores: Tensor, labels: Tensor, weights: Tensor | None, gamma: float = 2.0
) -> Tensor:
    """``d class_focal / d scores``.

    With ``p`` the probability of the true class the loss changes with its logarithm by
    ``-(1 - p)^gamma + gamma p (1 - p)^(gamma - 1) log p``.
    """
    log_right = _log_right(scores, labels)
    wrong = -torch.expm1(log_right)
    slopes = wrong**gamma - gamma * log_right.exp() * wrong ** (gamma - 1) * log_right
    return _class_pull(scores, labels, slopes * _class_mean_shares(scores, weights))


CLASS_LOSSES: dict[str, Loss] = {"focal": class_focal, "cross_entropy": class_cross_entropy}
_CLASS_SLOPES: dict[str, Callable[[Tensor, Tensor, Tensor | None], Tensor]] = {
    "focal": focal_slopes,
    "cross_entropy": cross_entropy_slopes,
}


def class_gradient(
    main: str | Loss, scores: Tensor, labels: Tensor, weights: Tensor | None
) -> Tensor:
    """``d main / d scores``, ``[n, K]``, without touching the network."""
    leaf = scores.detach().to(exact_type(scores))
    if isinstance(main, str):
        return _CLASS_SLOPES[main](leaf, labels, weights)
    return _by_autograd(main, leaf, labels, weights)


def _log_right(scores: Tensor, labels: Tensor) -> Tensor:
    return log_softmax(scores, -1).gather(1, labels[:, None])[:, 0]


def _class_mean_shares(scores: Tensor, weights: Tensor | None) -> Tensor | float:
    if weights is None:
        return 1 / len(scores)
    weights = weights.to(scores.dtype)
    total = weights.sum()
    return weights / (total + (total == 0))


def _class_pull(scores: Tensor, labels: Tensor, slopes: Tensor) -> Tensor:
    """``slopes`` by minus the log-probability of the true class, as slopes by the scores."""
    wrong = log_softmax(scores, -1).exp()
    right = torch.nn.functional.one_hot(labels, scores.shape[1]).to(scores.dtype)
    return slopes[:, None] * (wrong - right)


# Queries: pointwise losses ask every score for a probability, and so for an offset between queries
# that no ranking needs. The listwise loss knows no offset between them.

LISTWISE = "listwise"


def listwise_gradient(batch: QueryBatch, judged: int) -> Floats:
    """``d loss / d score``, ``[n]``, of the mean over the ``judged`` queries of a batch.

    The loss of a query is the mean over its relevant documents ``i`` of
    ``log(1 + sum_j exp(s_j - s_i))`` over the others ``j``: a relevant document competes with those
    that are not, and never with another relevant one. (ListNet's softmax over all documents, Cao et
    al. 2007, would want all relevant scores to be equal.) A weight is a number of copies.
    """
    gradient = np.zeros(batch.sample.scores.shape[1])
    with np.errstate(all="ignore"):
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


def query_gradient(main: str | Loss, scores: Tensor, given: ScoredExamples) -> Tensor:
    """The gradient of a loss by name or of the user's own, told the queries if it asks."""
    loss = main_loss(main)
    if "queries" in inspect.signature(getattr(loss, "forward", loss)).parameters:
        loss = partial(loss, queries=given.queries)
    return score_gradient(loss, scores, given.labels, given.weights)
