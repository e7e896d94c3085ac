"""The ends of a step: what a batch is read as, and the loss that comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setpoint.solvers.mix import attach, example_weights, mix


def read_batch(
    scores: Tensor, labels: Any, weights: Tensor | None, resampling: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Labels ``[n]``, the weights of the main loss, and those that rates count by."""
    labels = torch.as_tensor(labels, device=scores.device)
    labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if weights is not None:
        weights = example_weights(weights, scores[:, 0])
    counted = weights
    if resampling is not None:
        own = example_weights(resampling, scores[:, 0], "resampling")
        counted = own if weights is None else own * weights
    return labels, weights, counted


def mixed_loss(
    scores: Tensor,
    value: Tensor,
    gradient: Tensor,
    share: Any,
    main: Callable[[], Tensor] | None,
) -> Tensor:
    """The value with the gradient ``[n, K]``, mixed with that of the main loss if there is one."""
    value = value.to(torch.promote_types(scores.dtype, torch.float32))
    if torch.compiler.is_compiling():  # where nothing can raise, NaN stays NaN
        value = value + (0 * scores.detach()).sum()
    if not (torch.is_grad_enabled() and scores.requires_grad):
        return value
    if main is not None:
        slopes = main()
        sound = slopes.sum().isfinite()
        slopes = torch.where(sound, slopes, 0.0).to(gradient.dtype)
        gradient = mix(slopes.reshape(1, -1), gradient.reshape(1, -1), share)
        gradient = torch.where(sound, gradient, 0.0).reshape(scores.shape)
    return attach(scores, value, gradient)
