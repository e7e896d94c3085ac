"""Batches of matrices, dense or sparse, behind one interface.

A sparse batch has one pattern for all its members and a row of values for each: every product is
then a gather and a scatter, and the gradient has the memory of the values, never of the matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor


@dataclass(frozen=True)
class MatrixBatch:
    """A batch of matrices of one shape.

    Attributes:
        values: Dense ``[batch, rows, columns]``, or the entries of a sparse pattern
            ``[batch, entries]``.
        shape: Rows and columns of one member.
        pattern: The row and the column of each entry of a sparse pattern; ``None`` if dense.
    """

    values: Tensor
    shape: tuple[int, int]
    pattern: tuple[Tensor, Tensor] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether only the entries of a pattern are kept."""
        return self.pattern is not None

    def detach(self) -> MatrixBatch:
        """The same matrices outside the graph."""
        return replace(self, values=self.values.detach())

    def pick(self, members: Tensor) -> MatrixBatch:
        """Some members of the batch."""
        return replace(self, values=self.values[members])

    def times(self, x: Tensor) -> Tensor:
        """Each matrix times its vector, ``[batch, columns]`` to ``[batch, rows]``."""
        if self.pattern is None:
            return (self.values @ x[..., None])[..., 0]
        row, column = self.pattern
        out = x.new_zeros(x.shape[0], self.shape[0])
        return out.index_add_(1, row, self.values * x[:, column])

    def adjoint(self, u: Tensor) -> Tensor:
        """Each transposed matrix times its vector, ``[batch, rows]`` to ``[batch, columns]``."""
        if self.pattern is None:
            return (u[..., None, :] @ self.values)[..., 0, :]
        row, column = self.pattern
        out = u.new_zeros(u.shape[0], self.shape[1])
        return out.index_add_(1, column, self.values * u[:, row])

    def outer(self, u: Tensor, x: Tensor) -> Tensor:
        """The entries of ``u x'`` where this matrix has entries: the shape of ``values``."""
        if self.pattern is None:
            return u[..., :, None] * x[..., None, :]
        row, column = self.pattern
        return u[:, row] * x[:, column]

    def size(self) -> MatrixBatch:
        """The matrices of absolute values, which bound any product."""
        return replace(self, values=self.values.abs())

    def scale(self, rows: Tensor, columns: Tensor) -> MatrixBatch:
        """Each row and each column times a factor of its own."""
        return replace(self, values=self.values * self.outer(rows, columns))

    def largest(self, along: int) -> Tensor:
        """The largest absolute entry of each row (``along=1``) or of each column (``along=0``)."""
        size, count = self.values.abs(), self.shape[1 - along]
        if self.pattern is None:
            empty = self.values.new_zeros(self.values.shape[0], count)
            return size.amax(1 + along) if self.shape[along] else empty
        place = self.pattern[1 - along]
        out = size.new_zeros(size.shape[0], count)
        return out.scatter_reduce_(1, place.expand_as(size), size, "amax")

    def member(self, i: int) -> Any:
        """One member for scipy: a numpy array, or a sparse array in rows."""
        values = self.values[i].detach().cpu().numpy()
        if self.pattern is None:
            return values
        row, column = self.pattern
        return csr_array((values, (row.cpu().numpy(), column.cpu().numpy())), shape=self.shape)

    def block_diagonal(self) -> Any:
        """All members along the diagonal of one sparse array of scipy."""
        members, (m, n) = self.values.shape[0], self.shape
        values = self.values.cpu().numpy()
        if self.pattern is None:
            row, column = np.indices((m, n)).reshape(2, -1)
            values = values.reshape(members, -1)
        else:
            row, column = (place.cpu().numpy() for place in self.pattern)
        step = np.arange(members)[:, None]
        place = ((row + m * step).ravel(), (column + n * step).ravel())
        return csr_array((values.ravel(), place), shape=(m * members, n * members))


def sparse_batch(tensor: Tensor) -> MatrixBatch:
    """A sparse tensor, COO or CSR, with any leading batch shape, as one pattern for all."""
    rows, columns = (int(s) for s in tensor.shape[-2:])
    entries = _csr_entries if tensor.layout == torch.sparse_csr else _coo_entries
    line, column, values = entries(tensor)
    if tensor.dim() == 2:
        return MatrixBatch(values[None], (rows, columns), (line, column))
    members = math.prod(tensor.shape[:-2])
    place = line % rows * columns + column
    pattern, slot = torch.unique(place, return_inverse=True)
    empty = values.new_zeros(members, len(pattern))
    member = torch.div(line, rows, rounding_mode="floor")
    full = empty.index_put((member, slot), values)
    row = torch.div(pattern, columns, rounding_mode="floor")
    return MatrixBatch(full, (rows, columns), (row, pattern % columns))


def _coo_entries(tensor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Line (the row, counted through all members), column and value of each entry."""
    coo = tensor.coalesce()
    index = coo.indices()
    line = torch.zeros_like(index[0])
    for size, i in zip(tensor.shape[:-1], index[:-1], strict=True):
        line = line * size + i
    return line, index[-1], coo.values()


def _csr_entries(tensor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    counts = tensor.crow_indices().diff(dim=-1).flatten()
    line = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    return line, tensor.col_indices().flatten(), tensor.values().flatten()
