"""What every metric loss does with a batch: check it, measure it in float64, attach the gradient.

The loss of a batch is one number; its gradient on the scores is known in closed form, so nothing
is kept for the backward pass but that gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from setpoint.distributed import refuse_several_ranks
from setpoint.solvers.mix import attach, example_weights
from setpoint.thresholds import read

Measured = tuple[Tensor, Tensor]
"""A loss for each output, ``[c]``, and its gradient on the scores, ``[c, n]``."""
Measure = Callable[[Tensor, Tensor, Tensor], Measured]
"""From scores and the weights of positives and negatives, all ``[c, n]`` in float64.

An example has its weight in the column of its class and zero in the other. It may assume that both
classes are there: the result is not used for outputs where one is missing.
"""
EVERYONE = ((),)


def batch_loss(measure: Measure, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of ``measure`` over outputs, with its gradient; zero where a class is missing."""
    refuse_several_ranks()
    check_tensor(scores)
    if scores.numel() == 0:
        return scores.to(result_dtype(scores)).sum()
    if weights is not None:
        weights = example_weights(weights, scores)
    batch = read(EVERYONE, scores, labels, weights)
    value, gradient = measure(batch.scores, *batch.columns.unbind(-1))
    sound = batch.totals.amin(-1) > 0
    return attached(scores, value, gradient, sound)


def attached(scores: Tensor, value: Tensor, gradient: Tensor, sound: Tensor) -> Tensor:
    """The mean over outputs, and its gradient where both are ``sound`` and finite.

    What has no finite value, or lacks a class, is worth 0 and pulls nowhere, but it stays attached
    to the graph. Under a compiler, where nothing can raise, NaN scores give NaN.
    """
    sound = sound & (gradient.sum(-1) + value).isfinite()
    loss = torch.where(sound, value, 0.0).mean().to(result_dtype(scores))
    if torch.compiler.is_compiling():
        loss = loss + (0 * scores.detach()).sum()
    if not (torch.is_grad_enabled() and scores.requires_grad):
        return loss
    gradient = torch.where(sound[:, None], gradient, 0.0).div_(len(gradient))
    return attach(scores, loss, gradient.T.reshape(scores.shape))


def result_dtype(scores: Tensor) -> torch.dtype:
    """Single precision at least: a loss in half precision would be all rounding."""
    return torch.promote_types(scores.dtype, torch.float32)


def check_tensor(scores: object) -> None:
    """Losses differentiate, so their scores are tensors."""
    if not isinstance(scores, Tensor):
        kind = type(scores).__name__
        raise TypeError(f"Scores must be a torch tensor; got {kind}. Use torch.as_tensor(scores).")
    if not scores.is_floating_point():
        raise TypeError(f"Scores must be floating-point logits; got {scores.dtype}.")
