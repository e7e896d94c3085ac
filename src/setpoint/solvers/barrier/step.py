"""One step: from losses to rows of gradients to ``.grad``, with mixed precision and workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from setpoint._checks import whole
from setpoint.distributed import Row, average_gradients, workers
from setpoint.solvers.barrier.gradients import combined, dots_of, rows_of, scaled, write
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
        rows: int | None = None,
    ) -> None:
        self.losses = losses
        self.params = params
        self.group = group
        self.scaler = scaler
        rows = None if rows is None else whole(rows, "rows", least=0)
        self.values, self.share = losses.values(group, rows)
        self._rows: list[Row] = []
        self._dots = np.zeros((0, 0, 0))
        self._owners = np.zeros(len(params), dtype=int)

    def differentiate(self, weights: Vector | None, *, keep_graph: bool = False) -> Vector:
        """Dot products of the gradients of all losses, one backward pass each.

        If the weights are known, the sum needs only one pass in all.
        """
        tensors, names = self.losses.tensors, self.losses.names
        if weights is not None:
            tensors, names = [self.sum(weights)], [SUM]
        self._rows = self._rows_of(tensors, names, keep_graph)
        self._dots = dots_of(self._rows)
        gram: Vector = self._dots.sum(0)
        return gram

    def with_means(self, means: Means, pace: float) -> Vector:
        """Move the means of all gradients; dot products of rows, then of means.

        Returns:
            One Gram matrix for each loss: of the parameters that it is the first to reach.
        """
        means.follow(self._rows, pace)
        self.own(means)
        dots = dots_of([*self._rows, *means.rows], self._dots)
        return np.stack([dots[self._owners == loss].sum(0) for loss in range(len(self._rows))])

    def own(self, means: Means) -> None:
        """Look up which loss is the first that reaches each parameter."""
        self._owners = np.array(means.first_to_reach(len(self.params)))

    def sum(self, weights: Vector) -> Tensor:
        """The weighted sum of all losses, with its graph."""
        pairs = zip(weights.tolist(), self.losses.tensors, strict=True)
        return torch.stack([weight * loss.reshape(()) for weight, loss in pairs]).sum()

    def surrogate(self, weights: Vector) -> Tensor:
        """What has the direction as its gradient, and the value of the objective."""
        total = self.share * self.sum(weights) if self.share else self.nothing()
        extra = self._scales(weights) - 1.0
        parts = combined(self._rows, self._per_row(weights), extra.tolist())
        for part, parameter, factor in zip(parts, self.params, extra, strict=True):
            if part is not None and factor:
                total = total + (part.detach() * parameter).sum()
        value = self.losses.tensors[-1].detach().reshape(()) if self.share else self.values[-1]
        return total - total.detach() + value

    def nothing(self) -> Tensor:
        """A zero with a gradient of zero, where a step is left out."""
        return torch.stack([0 * parameter.sum() for parameter in self.params]).sum()

    def write(self, weights: Vector) -> None:
        """Add the weighted sum of the rows to ``.grad``, on the scale the scaler expects."""
        row = combined(self._rows, self._per_row(weights), self._scales(weights).tolist())
        if self.scaler is not None:
            scaled(row, self.scaler.get_scale())
        write(row, self.params)

    def _per_row(self, weights: Vector) -> list[float]:
        """Where weights were known there is one row, their sum."""
        return weights.tolist() if len(self._rows) > 1 else [1.0]

    def _scales(self, weights: Vector) -> Vector:
        """On every parameter the first loss that reaches it keeps its learning rate."""
        if not self.losses.ranked:
            return np.ones(len(self.params))
        scales: Vector = 1 / weights[self._owners]
        return scales

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
        if not self.share:  # means over no rows are no numbers
            return self._shared([[None] * len(self.params) for _ in tensors])
        if self.scaler is not None:
            tensors = [self.scaler.scale(each) for each in tensors]
        rows = rows_of(tensors, self.params, names, keep_graph=keep_graph)
        if self.scaler is not None:  # pushes are in true units, so the rows must be, too
            for row in rows:
                scaled(row, 1 / self.scaler.get_scale())
        for row in rows:
            scaled(row, self.share)
        return self._shared(rows)

    def _shared(self, rows: list[Row]) -> list[Row]:
        """Their means over the workers."""
        if workers(self.group) > 1:
            average_gradients(rows, self.params, self.group)
        return rows
