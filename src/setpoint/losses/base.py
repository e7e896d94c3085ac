"""What all metric losses share: read a batch, rank its scores, attach a known gradient.

The value of a metric loss and its gradient on the scores are computed together, in float64. The
gradient is all that is kept for the backward pass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setpoint._checks import positive
from setpoint.axes import Sample, read_sample
from setpoint.batch import describe, missing_labels
from setpoint.distributed import refuse_several_ranks
from setpoint.losses.writing import LinearProgram, TwoClasses

ValueAndGradient = tuple[Tensor, Tensor]
"""One loss per output, ``[c]``, and its gradient on the scores, ``[c, n]``."""
LossFunction = Callable[[Tensor, Tensor, Tensor], ValueAndGradient]
"""From scores and the weights of positives and negatives, all ``[c, n]`` in float64.

An example has its weight in the row of its own class and zero in the other. The function may assume
that both classes are present: its result is not used for outputs where one is missing.
"""

LARGEST = 1e100
"""Scores in float64 beyond this are refused; the other precisions end at 3e38."""


@dataclass(frozen=True)
class MetricLoss(ABC):
    """A metric's loss twice: by sorting, and as the linear program it is the optimal value of.

    A subclass has the options of the loss as its fields and checks them when it is made.
    """

    margin: float

    @property
    def takes_arrays(self) -> bool:
        """Whether :meth:`measure` takes arrays of numpy as well as tensors."""
        return False

    def __post_init__(self) -> None:
        positive(self.margin, "margin")

    @abstractmethod
    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        """Loss and gradient by sorting; see :data:`LossFunction`."""

    @abstractmethod
    def write(self, classes: TwoClasses) -> LinearProgram:
        """The linear program of one output."""

    def loss(self, scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch, with its gradient."""
        return batch_loss(self.measure, scores, labels, weights, arrays=self.takes_arrays)

    def program(
        self, scores: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> LinearProgram:
        """The program of a batch of one output; raises if a class is missing."""
        check_loss_scores(scores)
        batch = read_loss_batch(scores, labels, weights)
        if len(batch.scores) != 1:
            raise ValueError(
                f"A program is written for one output; got {len(batch.scores)}. "
                "Write one for each column of the scores."
            )
        if not batch.totals.all():
            there = describe(*batch.totals[0].tolist())
            raise ValueError(f"The program needs both classes; got {there}.")
        exact = scores.reshape(-1).double()
        return self.write(TwoClasses.of(exact, *batch.columns[0].unbind(-1)))


def batch_loss(
    function: LossFunction,
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    *,
    arrays: bool = False,
) -> Tensor:
    """The mean of a metric loss over outputs, with its gradient; zero where a class is missing.

    With ``arrays`` the function takes arrays of numpy too, and gets them where these are faster.
    Raises if scores are no floating-point tensor, if labels or weights do not fit them, where
    scores are so large that the loss overflows, and where several ranks hold parts of the batch.
    """
    refuse_several_ranks()
    check_loss_scores(scores)
    if scores.numel() == 0:
        return scores.to(exact_type(scores)).sum()
    batch = read_loss_batch(scores, labels, weights, arrays=arrays and in_numpy(scores))
    value, gradient = function(batch.scores, batch.columns[..., 0], batch.columns[..., 1])
    return mean_loss(scores, value, gradient, (batch.totals > 0).all(-1))


def read_loss_batch(
    scores: Tensor, labels: Tensor, weights: Tensor | None, *, arrays: bool = False
) -> Sample:
    """The checked batch in float64: one row of scores and two columns of weights per output.

    As tensors, or as arrays of numpy.
    """
    if weights is not None:
        weights = example_weights(weights, scores)
    if not torch.compiler.is_compiling():
        sample = read_sample(((),), scores.detach(), labels, weights)
        if scores.dtype == torch.float64 and np.abs(sample.scores).max(initial=0.0) > LARGEST:
            refuse_overflow(scores)
        return sample if arrays else sample.tensors(scores.device)
    positive = torch.as_tensor(labels).reshape(len(scores), -1).T > 0
    columns = torch.stack([positive, ~positive], -1).double()
    if weights is not None:
        columns = columns * weights.double().reshape(len(scores), -1).T[..., None]
    return Sample(scores.detach().double().reshape(len(scores), -1).T, columns)


def in_numpy(values: Tensor) -> bool:
    """Whether numpy can compute with them, which is faster: on the CPU, and not compiled."""
    return values.is_cpu and not torch.compiler.is_compiling()


def check_loss_scores(scores: object) -> None:
    """Raise a TypeError unless scores are a floating-point tensor."""
    if not isinstance(scores, Tensor):
        kind = type(scores).__name__
        raise TypeError(f"Scores must be a torch tensor; got {kind}. Use torch.as_tensor(scores).")
    if not scores.is_floating_point():
        raise TypeError(f"Scores must be floating-point logits; got {scores.dtype}.")


def example_weights(weights: Tensor, scores: Tensor, name: str = "weights") -> Tensor:
    """Weights as ``[n]``, or in the shape of the scores; raises for any other shape."""
    weights = torch.as_tensor(weights, device=scores.device)
    n = len(scores)
    if weights.shape == (n, 1):
        return weights.reshape(n)
    if weights.shape not in ((n,), scores.shape):
        raise ValueError(
            f"{name} must be one per example, [{n}], or in the shape of the scores, "
            f"{tuple(scores.shape)}; got {tuple(weights.shape)}."
        )
    return weights


def labelled(scores: Tensor, labels: Any, weights: Tensor | None) -> tuple[Any, Tensor | None]:
    """Labels and weights of a batch: rows without a label (NaN or -1) have weight 0."""
    if torch.compiler.is_compiling() or not isinstance(labels, Tensor):
        return labels, weights
    missing = missing_labels(labels)
    if missing is None:
        return labels, weights
    known = (~missing).reshape(scores.shape).to(scores)
    if weights is not None:
        given = example_weights(weights, scores)
        known = known * (given if given.shape == known.shape else given[:, None])
    return labels.masked_fill(missing, 0), known


def mean_loss(scores: Tensor, values: Any, gradient: Any, valid: Any) -> Tensor:
    """The mean over outputs, with its gradient; losses and gradients are tensors or arrays.

    An output that is not ``valid`` counts as 0 and has a gradient of zeros, attached to the graph.
    Loss and gradient end at the largest number of their precision. Raises a ValueError that names
    the largest score where float64 overflows; under a compiler, where nothing can raise, that
    output is not valid, and NaN scores give NaN.
    """
    library: Any = np if isinstance(values, np.ndarray) else torch
    if torch.compiler.is_compiling():
        valid = valid & (gradient.sum(-1) + values).isfinite()
    elif not math.isfinite(float(values.sum()) + float(gradient.sum())):
        finite = library.isfinite(gradient.sum(-1) + values)
        if not bool((finite | ~valid).all()):
            refuse_overflow(scores)
    dtype = exact_type(scores)
    loss, most = library.where(valid, values, 0.0).mean(), torch.finfo(dtype).max
    loss = min(float(loss), most) if library is np else loss.clamp(max=most).to(dtype)
    if torch.compiler.is_compiling():
        loss = loss + (0 * scores.detach()).sum()
    if not (torch.is_grad_enabled() and scores.requires_grad):
        return torch.as_tensor(loss, dtype=dtype)
    gradient = library.where(valid[:, None], gradient, 0.0) / len(gradient)
    if scores.dtype != torch.float64:
        most = torch.finfo(scores.dtype).max
        gradient = gradient.clip(-most, most)
    gradient = gradient.T.reshape(scores.shape)
    return attach(scores, loss, gradient if library is torch else torch.from_numpy(gradient))


def refuse_overflow(scores: Tensor) -> None:
    """Raise a ValueError that names the largest score."""
    size = scores.detach().abs().reshape(len(scores), -1).amax(1)
    row = int(size.argmax())
    raise ValueError(
        f"The loss of these scores overflows: the largest is {float(size[row]):.4g} in row {row}. "
        "Lower the learning rate, or scale the scores down."
    )


def attach(scores: Tensor, value: Tensor | float, gradient: Tensor) -> Tensor:
    """``value`` as a tensor whose gradient on the scores is ``gradient``.

    In the precision of the value: a loss scale must meet the gradient before half precision does.
    """
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    dtype = value.dtype if isinstance(value, Tensor) else dtype
    gradient, exact = gradient.to(dtype), scores.to(dtype)
    if torch.compiler.is_compiling() or (isinstance(value, Tensor) and value.requires_grad):
        return value + ((exact - exact.detach()) * gradient).sum()
    # a dot product has this gradient, in one node of the graph; its own value is overwritten
    attached = torch.dot(exact.flatten(), gradient.flatten())
    attached.detach().fill_(value)
    return attached


def exact_type(scores: Tensor) -> torch.dtype:
    """The precision of a loss: single at least, as one in half precision would be all rounding."""
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


@dataclass(frozen=True)
class Ranked:
    """Scores in ascending order with the weights of both classes, ``[c, n]``."""

    order: Tensor
    scores: Tensor
    positives: Tensor
    negatives: Tensor

    @classmethod
    def of(cls, scores: Tensor, positives: Tensor, negatives: Tensor) -> Ranked:
        """Sort once, and subtract the middle score: sums then lose no digits to a large shift."""
        if in_numpy(scores):  # numpy sorts in a quarter of the time
            order = torch.from_numpy(np.argsort(scores.numpy(), axis=-1))
        else:
            order = scores.argsort(-1)
        ranked = scores.gather(-1, order)
        middle = ranked.shape[-1] // 2
        ranked -= ranked[..., middle : middle + 1].clone()
        return cls(order, ranked, positives.gather(-1, order), negatives.gather(-1, order))

    def within(self, low: float, high: float) -> Ranked:
        """The same with only the negatives ranked between two false positive rates.

        A negative that an end of the range cuts through counts in part. Equal scores share the
        weight of their block, so the order of the examples does not matter.
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
        """The number of scores that are at most each value, ``[c, n]``."""
        if in_numpy(values) and len(values) == 1:  # numpy takes half the time
            found = np.searchsorted(self.scores[0].numpy(), values[0].numpy(), side="right")
            return torch.from_numpy(found)[None]
        return torch.searchsorted(self.scores, values, right=True)

    def block_starts(self) -> Tensor:
        """For each score, the number of smaller ones."""
        places = torch.arange(self.scores.shape[-1], device=self.scores.device)
        fresh = torch.ones_like(self.scores, dtype=torch.bool)
        fresh[..., 1:] = self.scores[..., 1:] != self.scores[..., :-1]
        return torch.where(fresh, places, 0).cummax(-1).values

    def block_ends(self) -> Tensor:
        """For each score, the number of smaller or equal ones."""
        n = self.scores.shape[-1]
        places = torch.arange(1, n + 1, device=self.scores.device)
        final = torch.ones_like(self.scores, dtype=torch.bool)
        final[..., :-1] = self.scores[..., 1:] != self.scores[..., :-1]
        return torch.where(final, places, n).flip(-1).cummin(-1).values.flip(-1)

    def unsorted(self, values: Tensor) -> Tensor:
        """Values in ascending order of the scores, put back in the order of the batch."""
        return torch.empty_like(values).scatter_(-1, self.order, values)


def from_zero(values: Tensor) -> Tensor:
    """Cumulative sums with a zero in front: one entry more than there are values."""
    return pad(values.cumsum(-1), (1, 0))
