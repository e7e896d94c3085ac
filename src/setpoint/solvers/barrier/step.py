"""One step: from losses to rows of gradients to ``.grad``, with mixed precision and workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.solvers.barrier.gradients import (
    Row,
    averaged,
    combined,
    gram_of,
    rows_of,
    scaled,
    workers,
    write,
)
from setpoint.solvers.barrier.losses import Losses
from setpoint.solvers.barrier.quadratic import Vector


class Step:
    """The gradients of one call of ``backward``; nothing is written before :meth:`write`."""

    def __init__(
        self,
        losses: Losses,
        params: Sequence[Tensor],
        group: dist.ProcessGroup | None,
        scaler: torch.amp.GradScaler | None,
    ) -> None:
        self.losses = losses
        self.params = params
        self.group = group
        self.scaler = scaler
        self.values = losses.values(group)
        self._rows: list[Row] = []

    def gram(self) -> Vector:
        """Dot products of all gradients, the objective last; one backward pass for each loss."""
        self._rows = self._differentiate(self.losses.tensors, self.losses.names)
        return gram_of(self._rows)

    def total(self, weights: Vector) -> Vector:
        """One backward pass of the weighted sum, instead of one each; its squared length."""
        pairs = zip(weights.tolist(), self.losses.tensors, strict=True)
        total = torch.stack([weight * loss.reshape(()) for weight, loss in pairs]).sum()
        self._rows = self._differentiate([total], ["the weighted sum of all losses"])
        return gram_of(self._rows)

    def write(self, weights: Vector) -> None:
        """Add the weighted sum of the rows to ``.grad``, on the scale the scaler expects."""
        row = combined(self._rows, weights.tolist())
        if self.scaler is not None:
            scaled(row, self.scaler.get_scale())
        write(row, self.params)

    def overflow(self) -> None:
        """Let the scaler see that its scale is too high: it skips the step and lowers it."""
        for parameter in self.params:
            parameter.grad = torch.full_like(parameter, torch.inf)

    def trouble(self, number: int, gram: Vector | None = None) -> str:
        """Which loss or gradient is not finite, in which step; empty if all is well."""
        what, numbers = "The value", self.values
        if gram is not None:
            what, numbers = "The gradient", np.diagonal(gram)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong) == 0:
            return ""
        names = self.losses.names if len(numbers) > 1 else ["the weighted sum of all losses"]
        return (
            f"{what} of {names[wrong[0]]} is not finite in step {number} "
            f"(value {self.values[wrong[0]]:g}); nothing was changed. Look for a division by zero, "
            "an overflow or a learning rate that is too high, or leave such batches out with "
            'Barrier(..., nonfinite="skip").'
        )

    def _differentiate(self, tensors: list[Tensor], names: list[str]) -> list[Row]:
        if self.scaler is not None:
            tensors = [self.scaler.scale(each) for each in tensors]
        rows = rows_of(tensors, self.params, names)
        if self.scaler is not None:  # dot products know the true lengths, pushes do too
            for row in rows:
                scaled(row, 1 / self.scaler.get_scale())
        if workers(self.group) > 1:
            averaged(rows, self.params, self.group)
        return rows
