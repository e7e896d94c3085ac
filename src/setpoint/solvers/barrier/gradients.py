"""Gradients of several losses, tensor by tensor: rows, their dot products, and their sum.

Nothing is ever flattened into one vector: a row is a list with one tensor (or None) for each
parameter, and a dot product is a sum over tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from setpoint.distributed import Row as Row
from setpoint.solvers.barrier.quadratic import Vector


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


def rows_of(
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


def dots_of(rows: Sequence[Row], known: Vector | None = None) -> Vector:
    """All dot products of rows, one matrix for each parameter, with one look at the device.

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
                    parts.append(torch.dot(_flat(x), _flat(y)))
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


def combined(rows: Sequence[Row], weights: Sequence[float], scales: Sequence[float]) -> Row:
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


def scaled(row: Row, factor: float) -> None:
    """Multiply a row by a number."""
    if factor != 1:
        for index, part in enumerate(row):
            row[index] = None if part is None else part * factor


def write(row: Row, params: Sequence[Tensor]) -> None:
    """Add a row to ``.grad``, as ``backward`` would: what no loss reaches is left alone."""
    for part, parameter in zip(row, params, strict=True):
        if part is None:
            continue
        if parameter.grad is None:
            parameter.grad = part
        else:
            parameter.grad.add_(part)
