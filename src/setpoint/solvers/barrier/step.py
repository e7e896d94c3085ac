"""One step: from losses to rows of gradients to ``.grad``, with mixed precision and workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed import Row, averaged, workers
from setpoint.solvers.barrier.gradients import combined, gram_of, rows_of, scaled, write
from setpoint.solvers.barrier.losses import Losses
from setpoint.solvers.barrier.means import Means
from setpoint.solvers.barrier.quadratic import Vector

SUM = "the weighted sum of all losses"


class Step:
    """The gradients of one call of ``backward``; nothing is written before :meth:`write`."""

    def __init__(
        self,
        losses: Losses,
        params: Sequence[Tensor],
        group: dist.ProcessGroup | None,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.losses = losses
        self.params = params
        self.group = group
        self.scaler = scaler
        self.values = losses.values(group)
        self._rows: list[Row] = []

    def differentiate(self, weights: Vector | None, *, keep_graph: bool = False) -> Vector:
        """Dot products of the gradients of all losses, one backward pass each.

        If the weights are known, the sum needs only one pass in all.
        """
        tensors, names = self.losses.tensors, self.losses.names
        if weights is not None:
            tensors, names = [self.sum(weights)], [SUM]
        self._rows = self._rows_of(tensors, names, keep_graph)
        return gram_of(self._rows)

    def with_means(self, means: Means, pace: float, gram: Vector) -> Vector:
        """Move the means of all gradients but the last, and add their dot products to ``gram``."""
        means.follow(self._rows[:-1], pace)
        return gram_of([*self._rows, *means.rows], gram)

    def sum(self, weights: Vector) -> Tensor:
        """The weighted sum of all losses, with its graph and the value of the objective."""
        pairs = zip(weights.tolist(), self.losses.tensors, strict=True)
        total = torch.stack([weight * loss.reshape(()) for weight, loss in pairs]).sum()
        return total - total.detach() + self.losses.tensors[-1].detach().reshape(())

    def nothing(self) -> Tensor:
        """A zero with a gradient of zero, where a step is left out."""
        return torch.stack([0 * parameter.sum() for parameter in self.params]).sum()

    def write(self, weights: Vector) -> None:
        """Add the weighted sum of the rows to ``.grad``, on the scale the scaler expects."""
        row = combined(self._rows, weights.tolist() if len(self._rows) > 1 else [1.0])
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
        names = self.losses.names if len(numbers) > 1 else [SUM]
        return (
            f"{what} of {names[wrong[0]]} is not finite in step {number} "
            f"(value {self.values[wrong[0]]:g}); nothing was changed. Look for a division by zero, "
            "an overflow or a learning rate that is too high, or leave such batches out with "
            'Barrier(..., nonfinite="skip").'
        )

    def _rows_of(self, tensors: list[Tensor], names: list[str], keep_graph: bool) -> list[Row]:
        if self.scaler is not None:
            tensors = [self.scaler.scale(each) for each in tensors]
        rows = rows_of(tensors, self.params, names, keep_graph=keep_graph)
        if self.scaler is not None:  # pushes are in true units, so the rows must be, too
            for row in rows:
                scaled(row, 1 / self.scaler.get_scale())
        if workers(self.group) > 1:
            averaged(rows, self.params, self.group)
        return rows
