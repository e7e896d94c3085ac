"""The main loss of :class:`setpoint.Implicit`, and the mix of its gradient with the implicit one.

The main loss (:mod:`setpoint.losses.log_likelihood`, or the user's own) shapes features and pulls
examples that are far from the threshold; the implicit loss moves them to the operating point. Their
gradients on the scores are matched by the sum of their absolute values, so the mix has no units and
does not care about the scale of the scores.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.arrays import Floats
from setpoint.axes.axis import Outcome
from setpoint.axes.queries import QueryOutcome
from setpoint.axes.sample import Sample, exact
from setpoint.losses import exact_type
from setpoint.losses.log_likelihood import (
    BINARY_LOSSES,
    CLASS_LOSSES,
    GRADIENTS,
    Loss,
    listwise_gradient,
)
from setpoint.rates import Array

ADJUSTED, LISTWISE = "adjusted", "listwise"
MAIN_NAMES: dict[str, tuple[str, ...]] = {
    "everyone": tuple(BINARY_LOSSES),
    "groups": tuple(BINARY_LOSSES),
    "classes": (ADJUSTED, *CLASS_LOSSES),
    "queries": (LISTWISE, *BINARY_LOSSES),
}
"""The main losses that have a name, by the kind of a goal."""


def check_main(main: str | Loss, kind: str) -> str | Loss:
    """The same main loss; an error if it is no callable, and no name for a goal of this kind."""
    if isinstance(main, str):
        if main not in MAIN_NAMES[kind]:
            known = ", ".join(map(repr, MAIN_NAMES[kind]))
            raise ValueError(f"main must be one of {known} or a callable; got {main!r}.")
    elif not callable(main):
        raise TypeError(f"main must be the name of a loss or a callable; got {main!r}.")
    return main


def main_loss(main: str | Loss, losses: dict[str, Loss] = BINARY_LOSSES) -> Loss:
    """A main loss by its name among ``losses``, or the user's own callable."""
    return losses[main] if isinstance(main, str) else main


def main_gradient(
    main: str | Loss,
    batch: Any,
    outcome: Outcome,
    scores: Tensor,
    labels: Any,
    weights: Tensor | None,
) -> Floats:
    """The gradient of the main loss on the scores, ``[c, n]`` as that of the outcome.

    Args:
        main: The name of a loss, or the user's own.
        batch: What the axis has read.
        outcome: What holding its thresholds gave.
        scores: As they were handed in, without their graph.
        labels: As they were handed in.
        weights: What examples count for; None if all count the same.
    """
    if isinstance(batch, Sample):
        loss = main_loss(main)
        if isinstance(main, str) and loss in GRADIENTS:  # in numpy, which is faster
            own = None if weights is None else exact(weights)
            return np.asarray(GRADIENTS[loss](batch.ranked.T, batch.positive.T, own).T)
        found = score_gradient(loss, scores, labels, weights)
        return np.asarray(exact(found).reshape(-1, len(batch.scores)).T)
    if isinstance(outcome, QueryOutcome):
        if main == LISTWISE:
            return listwise_gradient(outcome.batch, outcome.judged)[None]
        given = outcome.batch.examples
        weights = None if given.weights is None else torch.as_tensor(given.weights).to(scores)
        loss = main_loss(main)
        if "queries" in inspect.signature(getattr(loss, "forward", loss)).parameters:
            loss = partial(loss, queries=given.queries)
        found = score_gradient(loss, scores, given.labels, weights)
    else:
        found = score_gradient(main_loss(main, CLASS_LOSSES), scores, labels, weights)
    return np.asarray(exact(found).reshape(1, -1))


def score_gradient(loss: Loss, scores: Tensor, labels: Any, weights: Tensor | None) -> Tensor:
    """``d loss / d scores``, in the shape of the scores, without touching the network.

    Labels are binary, one for each score, or the classes of scores ``[n, K]``.
    """
    leaf = scores.detach().to(exact_type(scores))
    target = torch.as_tensor(labels, device=leaf.device)
    binary = target.numel() == leaf.numel()
    target = target.reshape(leaf.shape) if binary else target
    for known, gradient_of in GRADIENTS.items():
        if loss is known:
            found: Tensor = gradient_of(leaf, target, weights)
            return found
    return _by_autograd(loss, leaf, target.to(leaf.dtype) if binary else target, weights)


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


def blended(outcome: Outcome, main: Floats | None, share: float) -> tuple[float, Floats]:
    """The value of a batch and its gradient on the scores, ``[c, n]``, both means over outputs.

    Outputs whose value or gradient is not finite count as 0 and have a gradient of zeros.
    """
    value, slopes = outcome.value, outcome.gradient
    if main is None:
        slopes, size = slopes / len(slopes), slopes.sum(-1)
    else:
        slopes, size = mix(main, slopes, share)
    sound = outcome.sound & np.isfinite(size)
    if not sound.all():
        value = np.where(sound, value, 0.0)
        slopes = np.where(sound[:, None], slopes, 0.0)
    return float(value.sum()) / len(sound), slopes


def mix(main: Array, implicit: Array, share: Tensor | float) -> tuple[Array, Array]:
    """``share`` of the main gradient, the rest implicit at the same length; both ``[c, n]``.

    In numpy or torch. The second result, ``[c]``, is finite for an output whose mixture is.
    """
    length, own = (abs(x).sum(-1) for x in (main, implicit))
    factor = (1 - share) * length / (own + (own == 0))
    found = implicit * factor[..., None]
    found += main * share
    return found, factor + own
