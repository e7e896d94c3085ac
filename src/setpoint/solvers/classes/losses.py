"""Main losses of several classes, with their gradients in closed form.

For two classes they are the binary ones of the difference of the two scores.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from setpoint.solvers.mix import Loss, value_of


def class_cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of logits ``[n, K]`` and classes ``[n]``, the weighted mean over examples."""
    return -(_log_right(scores, labels) * _shares(scores, weights)).sum()


def class_focal(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, gamma: float = 2.0
) -> Tensor:
    """Focal loss: cross-entropy in which an example counts by how wrong it still is."""
    log_right = _log_right(scores, labels)
    wrong = -torch.expm1(log_right)
    return -(wrong**gamma * log_right * _shares(scores, weights)).sum()


def cross_entropy_slopes(scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """``d class_cross_entropy / d scores``: probabilities minus the truth."""
    return _pull(scores, labels, torch.ones_like(scores[:, 0]) * _shares(scores, weights))


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
    return _pull(scores, labels, slopes * _shares(scores, weights))


CLASS_LOSSES: dict[str, Loss] = {"focal": class_focal, "cross_entropy": class_cross_entropy}
SLOPES: dict[str, Callable[[Tensor, Tensor, Tensor | None], Tensor]] = {
    "focal": focal_slopes,
    "cross_entropy": cross_entropy_slopes,
}


def class_gradient(
    main: str | Loss, scores: Tensor, labels: Tensor, weights: Tensor | None
) -> Tensor:
    """``d main / d scores``, ``[n, K]``, without touching the network."""
    leaf = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
    if isinstance(main, str):
        return SLOPES[main](leaf, labels, weights)
    leaf.requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(value_of(main, leaf, labels, weights), leaf)
    return gradient


def _log_right(scores: Tensor, labels: Tensor) -> Tensor:
    return log_softmax(scores, -1).gather(1, labels[:, None])[:, 0]


def _shares(scores: Tensor, weights: Tensor | None) -> Tensor | float:
    if weights is None:
        return 1 / len(scores)
    weights = weights.to(scores.dtype)
    total = weights.sum()
    return weights / (total + (total == 0))


def _pull(scores: Tensor, labels: Tensor, slopes: Tensor) -> Tensor:
    """``slopes`` by minus the log-probability of the true class, as slopes by the scores."""
    wrong = log_softmax(scores, -1).exp()
    right = torch.nn.functional.one_hot(labels, scores.shape[1]).to(scores.dtype)
    return slopes[:, None] * (wrong - right)
