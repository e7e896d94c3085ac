"""Two losses, one backward pass: match their gradients on the scores, mix, attach.

The main loss shapes features and pulls examples that are far from the threshold; the implicit loss
moves them to the operating point. Their gradients are matched by the sum of their absolute values,
so the mix has no units and does not care about the scale of the scores.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch import Tensor

from setpoint.losses import attach as attach
from setpoint.losses import exact_type as exact_type
from setpoint.losses import example_weights as example_weights
from setpoint.rates import Array
from setpoint.solvers.pointwise import GRADIENTS, MAIN_LOSSES

Loss = Callable[..., Tensor]


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
            return gradient_of(leaf, target, weights)
    leaf.requires_grad_()
    with torch.enable_grad():
        value = value_of(loss, leaf, target.to(leaf.dtype), weights)
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


def mix(main: Array, implicit: Array, share: Tensor | float) -> Array:
    """``share`` of the main gradient, the rest implicit at the same length; both ``[c, n]``.

    In numpy or torch.
    """
    length, own = (abs(x).sum(-1)[..., None] for x in (main, implicit))
    return share * main + (1 - share) * length / (own + (own == 0)) * implicit
