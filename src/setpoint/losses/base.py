"""What every metric loss does with a batch: check it, measure it in float64, attach the gradient.

The loss of a batch is one number; its gradient on the scores is known in closed form, so nothing
is kept for the backward pass but that gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setpoint.distributed import refuse_several_ranks
from setpoint.thresholds import in_numpy, read

ValueAndGradient = tuple[Tensor, Tensor]
"""A loss for each output, ``[c]``, and its gradient on the scores, ``[c, n]``."""
Measure = Callable[[Tensor, Tensor, Tensor], ValueAndGradient]
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


# ------------------------------------------------------------------------------------------------
# Examples in the order of their scores, and stretches of neighbours among them.


@dataclass(frozen=True)
class Ranked:
    """Scores in ascending order with the weights of both classes, ``[c, n]``."""

    order: Tensor
    scores: Tensor
    positives: Tensor
    negatives: Tensor

    @classmethod
    def of(cls, scores: Tensor, positives: Tensor, negatives: Tensor) -> Ranked:
        """Sorted once; around their middle, so that sums of scores lose no digits to a shift."""
        if in_numpy(scores):  # a quarter of the time
            order = torch.from_numpy(np.argsort(scores.numpy(), axis=-1))
        else:
            order = scores.argsort(-1)
        ranked = scores.gather(-1, order)
        middle = ranked.shape[-1] // 2
        ranked -= ranked[..., middle : middle + 1].clone()
        return cls(order, ranked, positives.gather(-1, order), negatives.gather(-1, order))

    def within(self, low: float, high: float) -> Ranked:
        """Only the negatives ranked between two false positive rates, counted from the top.

        One that the end of the range cuts through counts in part. Equal scores share what their
        block is given, so the order of the examples does not matter.
        """
        running = from_zero(self.negatives)
        total = running[..., -1:]
        above = total - running.gather(-1, self.block_ends())
        below = total - running.gather(-1, self.block_starts())
        block = below - above
        part = below.clamp_(max=high * total) - above.clamp_(min=low * total)
        part.clamp_(min=0).div_(block + (block == 0))
        return replace(self, negatives=part.mul_(self.negatives))

    def after(self, values: Tensor) -> Tensor:
        """How many scores are at most each value."""
        if in_numpy(values) and len(values) == 1:  # half the time
            found = np.searchsorted(self.scores[0].numpy(), values[0].numpy(), side="right")
            return torch.from_numpy(found)[None]
        return torch.searchsorted(self.scores, values, right=True)

    def block_starts(self) -> Tensor:
        """For each score, how many are smaller."""
        places = torch.arange(self.scores.shape[-1], device=self.scores.device)
        fresh = torch.ones_like(self.scores, dtype=torch.bool)
        fresh[..., 1:] = self.scores[..., 1:] != self.scores[..., :-1]
        return torch.where(fresh, places, 0).cummax(-1).values

    def block_ends(self) -> Tensor:
        """For each score, how many are smaller or equal."""
        n = self.scores.shape[-1]
        places = torch.arange(1, n + 1, device=self.scores.device)
        final = torch.ones_like(self.scores, dtype=torch.bool)
        final[..., :-1] = self.scores[..., 1:] != self.scores[..., :-1]
        return torch.where(final, places, n).flip(-1).cummin(-1).values.flip(-1)

    def unsorted(self, values: Tensor) -> Tensor:
        """Values of the ranked examples, back in the order of the batch."""
        return torch.empty_like(values).scatter_(-1, self.order, values)


def from_zero(values: Tensor) -> Tensor:
    """Running sums that start with zero: one more than there are values."""
    return pad(values.cumsum(-1), (1, 0))


def example_weights(weights: Tensor, scores: Tensor, name: str = "weights") -> Tensor:
    """Weights as ``[n]``, or in the shape of the scores."""
    weights = torch.as_tensor(weights, device=scores.device)
    n = len(scores)
    if weights.shape == (n, 1):
        return weights.reshape(n)
    if weights.shape not in ((n,), scores.shape):
        raise ValueError(
            f"{name} must be one an example, [{n}], or in the shape of the scores, "
            f"{tuple(scores.shape)}; got {tuple(weights.shape)}."
        )
    return weights


def exact_type(scores: Tensor) -> torch.dtype:
    """The precision that losses are computed in: single at least."""
    return torch.promote_types(scores.dtype, torch.float32)


def attach(scores: Tensor, value: Tensor | float, gradient: Tensor) -> Tensor:
    """``value`` with a gradient of our choosing on the scores.

    In the precision of the value: a loss scale must meet the gradient before half precision does.
    """
    dtype = value.dtype if isinstance(value, Tensor) else exact_type(scores)
    gradient, exact = gradient.to(dtype), scores.to(dtype)
    if torch.compiler.is_compiling() or (isinstance(value, Tensor) and value.requires_grad):
        return value + ((exact - exact.detach()) * gradient).sum()
    # a product has this gradient, in one node of the graph; what it comes to is of no interest
    attached = torch.dot(exact.flatten(), gradient.flatten())
    attached.detach().fill_(value)
    return attached
