"""Gradients of several losses, tensor by tensor: rows, their dot products, and their sum.

Nothing is ever flattened into one vector: a row is a list with one tensor (or None) for each
parameter, and a dot product is a sum over tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from setpoint._checks import whole
from setpoint.distributed import Row, average_gradients, workers
from setpoint.solvers.barrier.constraints import Losses
from setpoint.solvers.barrier.quadratic_program import Vector

SUM = "the weighted sum of all losses"


def trainable(params: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that learn, or an error if there is none."""
    given = [params] if isinstance(params, Tensor) else list(params)
    for each in given:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"Barrier takes parameters, such as model.parameters(); got {type(each).__name__}."
            )
    learning = list(dict.fromkeys(p for p in given if p.requires_grad))
    if not learning:
        raise ValueError(
            f"No trainable parameter among {len(given)}: pass model.parameters(), with "
            "requires_grad set on what is to be trained."
        )
    return learning


def gradient_rows(
    losses: Sequence[Tensor],
    params: Sequence[Tensor],
    names: Sequence[str],
    *,
    keep_graph: bool = False,
) -> list[Row]:
    """The gradient of each loss; the graph they share is kept until the last of them."""
    rows: list[Row] = []
    for loss, name in zip(losses, names, strict=True):
        last = len(rows) == len(losses) - 1
        row = list(
            torch.autograd.grad(
                loss, params, retain_graph=keep_graph or not last, allow_unused=True
            )
        )
        if all(part is None for part in row):
            raise ValueError(
                f"{name} does not depend on any of the {len(params)} parameters: was the model's "
                "output detached, or is this another model's loss?"
            )
        rows.append([_dense(part) for part in row])
    return rows


def dot_products(rows: Sequence[Row], known: Vector | None = None) -> Vector:
    """All dot products of rows, one matrix per parameter, with one transfer from the device.

    Those of the first rows may be known already. The sum over parameters is the Gram matrix.

    Returns:
        ``[parameters, k, k]``
    """
    k, first = len(rows), 0 if known is None else known.shape[-1]
    dots = np.zeros((len(rows[0]), k, k))
    if known is not None:
        dots[:, :first, :first] = known
    places, parts = [], list[Tensor]()
    for i in range(first, k):
        for j in range(i + 1):
            for place, (x, y) in enumerate(zip(rows[i], rows[j], strict=True)):
                if x is not None and y is not None:
                    places.append((place, i, j))
                    parts.append(torch.dot(_flat(x), _flat(y).to(x.device)))
    device = parts[0].device
    place, row, column = np.array(places).T
    numbers = torch.stack([part.to(device) for part in parts]).cpu().numpy()
    dots[place, row, column] = dots[place, column, row] = numbers
    return dots


def _flat(part: Tensor) -> Tensor:
    """A view where there is one; half precision would overflow in a sum of squares."""
    flat = part.reshape(-1)
    return flat.float() if flat.dtype in (torch.float16, torch.bfloat16) else flat


def _dense(part: Tensor | None) -> Tensor | None:
    return part.to_dense() if part is not None and part.is_sparse else part


def combine(rows: Sequence[Row], weights: Sequence[float], scales: Sequence[float]) -> Row:
    """``scale * sum_i weights[i] * rows[i]``, a scale for each parameter.

    The rows are given up, one tensor after the other. Never in place: automatic differentiation may
    hand out one tensor for two parameters.
    """
    total: Row = []
    for index, scale in enumerate(scales):
        sum_: Tensor | None = None
        for row, weight in zip(rows, weights, strict=True):
            part, row[index] = row[index], None
            if part is None:
                continue
            factor = weight * scale
            sum_ = part * factor if sum_ is None else sum_.add_(part, alpha=factor)
        total.append(sum_)
    return total


def scale_row(row: Row, factor: float) -> None:
    """Multiply a row by a number."""
    if factor != 1:
        for index, part in enumerate(row):
            row[index] = None if part is None else part * factor


def add_to_grad(row: Row, params: Sequence[Tensor]) -> None:
    """Add a row to ``.grad``, as ``backward`` would: what no loss reaches is left alone."""
    for part, parameter in zip(row, params, strict=True):
        if part is None:
            continue
        if parameter.grad is None:
            parameter.grad = part
        else:
            parameter.grad.add_(part)


class LossGradients:
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
        self.rows: list[Row] = []
        self.dots: Vector = np.zeros((0, 0, 0))
        self.gram: Vector = np.zeros((0, 0))

    def differentiate(self, weights: Vector | None, *, keep_graph: bool = False) -> None:
        """Fill ``rows``, ``dots`` and ``gram``: one backward pass per loss.

        If the weights are known, one pass in all gives the only row, the gradient of their sum.
        """
        tensors, names = self.losses.tensors, self.losses.names
        if weights is not None:
            tensors, names = [self.sum(weights)], [SUM]
        self.rows = self._rows_of(tensors, names, keep_graph)
        self.dots = dot_products(self.rows)
        self.gram = self.dots.sum(0)

    def sum(self, weights: Vector) -> Tensor:
        """The weighted sum of all losses, with its graph."""
        pairs = zip(weights.tolist(), self.losses.tensors, strict=True)
        return torch.stack([weight * loss.reshape(()) for weight, loss in pairs]).sum()

    def surrogate(self, weights: Vector, scales: Vector) -> Tensor:
        """A scalar with the direction as its gradient and the value of the objective."""
        total = self.share * self.sum(weights) if self.share else self.nothing()
        extra = scales - 1.0
        parts = combine(self.rows, self._per_row(weights), extra.tolist())
        for part, parameter, factor in zip(parts, self.params, extra, strict=True):
            if part is not None and factor:
                total = total + (part.detach() * parameter).sum()
        value = self.losses.tensors[-1].detach().reshape(()) if self.share else self.values[-1]
        return total - total.detach() + value

    def nothing(self) -> Tensor:
        """A zero with a gradient of zero, where a step is left out."""
        return torch.stack([0 * parameter.sum() for parameter in self.params]).sum()

    def write(self, weights: Vector, scales: Vector) -> None:
        """Add the weighted sum of the rows to ``.grad``, on the scale the scaler expects."""
        row = combine(self.rows, self._per_row(weights), scales.tolist())
        if self.scaler is not None:
            scale_row(row, self.scaler.get_scale())
        add_to_grad(row, self.params)

    def _per_row(self, weights: Vector) -> list[float]:
        """Where weights were known there is one row, their sum."""
        return weights.tolist() if len(self.rows) > 1 else [1.0]

    def overflow(self) -> None:
        """Let the scaler see that its scale is too high: it skips the step and lowers it."""
        for parameter in self.params:
            parameter.grad = torch.full_like(parameter, torch.inf)

    def trouble(self, number: int) -> str:
        """Which loss or gradient is not finite, in which step; empty if all are."""
        what, numbers = "The value", self.values
        if len(self.gram):
            what, numbers = "The gradient", np.diagonal(self.gram)
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
        """The gradients of these losses, averaged over workers."""
        rows: list[Row] = [[None] * len(self.params) for _ in tensors]
        if self.share:  # else this worker has no rows, and the loss is NaN
            rows = self._own_rows(tensors, names, keep_graph)
        if workers(self.group) > 1:
            average_gradients(rows, self.params, self.group)
        return rows

    def _own_rows(self, tensors: list[Tensor], names: list[str], keep_graph: bool) -> list[Row]:
        """The gradients on this worker, in true units, by its share of the rows."""
        if self.scaler is not None:
            tensors = [self.scaler.scale(each) for each in tensors]
        rows = gradient_rows(tensors, self.params, names, keep_graph=keep_graph)
        if self.scaler is not None:  # pushes are in true units, so rows must be, too
            for row in rows:
                scale_row(row, 1 / self.scaler.get_scale())
        for row in rows:
            scale_row(row, self.share)
        return rows
