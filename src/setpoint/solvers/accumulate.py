"""Gradient accumulation that is exact: micro-batches whose loss is that of the batch they make.

A rate of a micro-batch is not the rate of the batch, so adding up micro-batch gradients trains for
another number. Here the scores of all micro-batches are taken first, without graphs; the loss of
the whole gives its derivative by every score, and each micro-batch is then passed through the model
once more, with a graph, to send its share of that derivative back. The price is one more forward
pass; the memory is that of one micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint._checks import whole


@dataclass
class ForwardState:
    """A snapshot of the random state, the buffers and the versions of the weights.

    Attributes:
        random: The random state of the CPU.
        devices: Those of the GPUs.
        buffers: Copies of the model's buffers.
        versions: Torch's version counter of each weight, which a change in place raises.
    """

    random: Tensor
    devices: list[Tensor]
    buffers: list[Tensor]
    versions: list[int]

    @classmethod
    def of(cls, model: nn.Module) -> ForwardState:
        """The present state of a model."""
        started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        devices = torch.cuda.get_rng_state_all() if started else []
        buffers = [buffer.detach().clone() for buffer in model.buffers()]
        versions = [parameter._version for parameter in model.parameters()]
        return cls(torch.get_rng_state(), devices, buffers, versions)

    @torch.no_grad()
    def restore(self, model: nn.Module) -> None:
        """Set the random state and the buffers back."""
        torch.set_rng_state(self.random)
        if self.devices:
            torch.cuda.set_rng_state_all(self.devices)
        for buffer, then in zip(model.buffers(), self.buffers, strict=True):
            buffer.copy_(then)


@dataclass
class _Micro:
    """A micro-batch, its scores, and the state of the model before its first pass."""

    inputs: tuple[Any, ...]
    labels: Any
    more: dict[str, Any]
    scores: Tensor
    before: ForwardState


@dataclass
class Accumulated:
    """Micro-batches on their way to be one batch; made by ``criterion.accumulate(k)``.

    Args:
        criterion: The criterion of the whole batch.
        count: How many micro-batches make one.

    Examples:
        >>> from setpoint import Implicit, fnr_at_fpr
        >>> model = nn.Linear(3, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> accumulated = Implicit(fnr_at_fpr(0.1)).accumulate(4)
        >>> for _ in range(8):
        ...     x, y = torch.randn(32, 3), torch.arange(32) % 2
        ...     loss = accumulated.backward(model, x, y)      # None until the fourth
        ...     if loss is not None:
        ...         optimizer.step()
        ...         optimizer.zero_grad()
        >>> loss.shape
        torch.Size([])
    """

    criterion: Any
    count: int
    waiting: list[_Micro] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.count = whole(self.count, "The number of micro-batches", least=1)

    def backward(
        self,
        model: nn.Module,
        inputs: Any,
        labels: Any,
        *,
        scaler: torch.amp.GradScaler | None = None,
        **more: Any,
    ) -> Tensor | None:
        """Take in a micro-batch; with the last one, add the gradient of the batch to ``.grad``.

        Args:
            model: As it is called in training; with several inputs, pass them as a tuple.
            inputs: What the model is called with.
            labels: As for the criterion, like ``weights=``, ``groups=`` and the rest.
            scaler: The gradient scaler of mixed precision: ``.grad`` is then on its scale.
            **more: What else the criterion is called with.

        Returns:
            The loss of the batch with its last micro-batch, else None.
        """
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        before = ForwardState.of(model)
        self._same_weights(before)
        with torch.no_grad():
            scores = model(*given)
        torch.clear_autocast_cache()  # weights cast without a graph must not be used again
        self.waiting.append(_Micro(given, labels, more, scores.detach(), before))
        return self.flush(model, scaler=scaler) if len(self.waiting) == self.count else None

    def flush(
        self, model: nn.Module, *, scaler: torch.amp.GradScaler | None = None
    ) -> Tensor | None:
        """Make a batch of the micro-batches that wait, such as those at the end of the data."""
        after = ForwardState.of(model)
        self._same_weights(after)
        micros, self.waiting = self.waiting, []
        if not micros:
            return None
        scores = torch.cat([micro.scores for micro in micros]).requires_grad_()
        with torch.enable_grad():
            loss: Tensor = self.criterion(
                scores,
                _joined_columns([m.labels for m in micros]),
                **_more([m.more for m in micros]),
            )
            scaled = loss if scaler is None else scaler.scale(loss)
            torch.autograd.backward(scaled)
        slopes = torch.zeros_like(scores) if scores.grad is None else scores.grad
        parts = torch.split(slopes, [len(m.scores) for m in micros])
        for i, (micro, slope) in enumerate(zip(micros, parts, strict=True)):
            micro.before.restore(model)
            with _averaged_once(model, i < len(micros) - 1), torch.enable_grad():
                torch.autograd.backward(model(*micro.inputs), slope)
        after.restore(model)
        return loss.detach()

    def _same_weights(self, now: ForwardState) -> None:
        """The slopes of old scores must not be sent back through other weights."""
        if self.waiting and self.waiting[0].before.versions != now.versions:
            raise RuntimeError(
                f"The weights changed while {len(self.waiting)} of {self.count} micro-batches "
                "were waiting: call optimizer.step() only when backward() returns a loss, or end "
                "the batch before it with flush(model)."
            )


@contextmanager
def _averaged_once(model: nn.Module, alone: bool) -> Iterator[None]:
    """Let a wrapped model average its gradients once, with the last micro-batch."""
    waits = alone and isinstance(model, DistributedDataParallel)
    with cast(Any, model).no_sync() if waits else nullcontext():
        yield


def _more(given: list[dict[str, Any]]) -> dict[str, Any]:
    """The keyword arguments of the whole batch."""
    for one in given:
        if one.keys() != given[0].keys():
            raise ValueError(
                "All micro-batches of a batch must be given the same things; one has "
                f"{sorted(given[0]) or 'none'}, another {sorted(one) or 'none'}."
            )
    return {name: _joined_columns([one[name] for one in given]) for name in given[0]}


def _joined_columns(parts: list[Any]) -> Any:
    """Columns of micro-batches, one after the other."""
    if isinstance(parts[0], dict):
        return {name: _joined_columns([part[name] for part in parts]) for name in parts[0]}
    if any(part is None for part in parts):
        if all(part is None for part in parts):
            return None
        raise ValueError("Weights or groups are missing in some micro-batches of a batch.")
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)
    return np.concatenate([np.asarray(part) for part in parts])
