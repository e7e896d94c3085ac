"""A linear program as plain tensors, in the form that the LP layer takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class LinearProgram(NamedTuple):
    """``min c'z  subject to  A z <= b,  E z = h,  z >= 0 (if nonnegative)``.

    All in float64; ``A`` and ``E`` are sparse (COO). Scores enter ``c``, ``A`` or ``b`` as part of
    the graph, so that a layer which differentiates the solution differentiates the loss. The first
    six fields are what ``linear_program`` takes, in its order; the loss is
    ``value(z) = offset + c'z``.
    """

    c: Tensor
    A: Tensor
    b: Tensor
    E: Tensor | None
    h: Tensor | None
    nonnegative: bool
    offset: float = 0.0

    def value(self, z: Tensor) -> Tensor:
        """The loss at ``z``."""
        return self.offset + self.c @ z


class Rows:
    """Rows of a sparse matrix, written down block by block."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self._entries: list[tuple[Tensor, Tensor, Tensor]] = []
        self._sides: list[Tensor] = []

    def add(self, side: Tensor, *entries: tuple[Tensor, Tensor]) -> None:
        """A block of ``len(side)`` rows: for each entry its columns and its values, ``[rows]``."""
        rows = self.count + torch.arange(len(side))
        for columns, values in entries:
            columns, values = (x.expand(len(side)) for x in (columns, values))
            self._entries.append((rows, columns, values.to(side.dtype)))
        self._sides.append(side)
        self.count += len(side)

    def sum(self, side: float, columns: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """One row: these values in these columns."""
        where, what = torch.cat(list(columns)), torch.cat(list(values))
        row = torch.full_like(where, self.count)
        self._entries.append((row, where, what))
        self._sides.append(what.new_full((1,), side))
        self.count += 1

    def at_least_zero(self, *columns: Tensor) -> None:
        """A row for each of these variables: it is not negative."""
        where = torch.cat(columns)
        side = self._sides[0].new_zeros(len(where))
        self.add(side, (where, -torch.ones_like(side)))

    def matrix(self) -> tuple[Tensor, Tensor]:
        """The matrix and its right-hand side."""
        rows, columns, values = (torch.cat(x) for x in zip(*self._entries, strict=True))
        shape = (self.count, self.columns)
        where = torch.stack([rows, columns]).to(values.device)
        matrix = torch.sparse_coo_tensor(where, values, shape, check_invariants=True)
        return matrix, torch.cat(self._sides)


def blocks(*sizes: int) -> list[Tensor]:
    """Consecutive column numbers for variables of the given sizes."""
    return list(torch.split(torch.arange(sum(sizes)), list(sizes)))
