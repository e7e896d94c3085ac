"""A linear program as plain tensors, and the builder that metric losses write theirs with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

Entry = tuple[Tensor, Tensor]
"""Column numbers of variables, and their coefficients."""


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


class ProgramBuilder:
    """Collects the variables and the rows of a linear program.

    Variables are at least 0 unless they are ``free``.
    """

    def __init__(self) -> None:
        self._costs: list[Tensor] = []
        self._free: list[bool] = []
        self._inequalities = _Rows()
        self._equalities = _Rows()

    def variables(self, costs: Tensor, *, free: bool = False) -> Tensor:
        """New variables with these costs, ``[k]``; returns their column numbers."""
        start = len(self._free)
        self._costs.append(costs)
        self._free += [free] * len(costs)
        return torch.arange(start, len(self._free))

    def at_most(self, side: Tensor, *entries: Entry) -> None:
        """Add ``len(side)`` inequalities; each entry has columns and values, ``[rows]`` or one."""
        self._inequalities.add(side, entries)

    def sum_at_most(self, side: Tensor | float, *entries: Entry) -> None:
        """Add one inequality: the sum of all entries."""
        self._inequalities.add_sum(side, entries)

    def sum_equal(self, side: Tensor | float, *entries: Entry) -> None:
        """Add one equality: the sum of all entries."""
        self._equalities.add_sum(side, entries)

    def build(self, offset: float = 0.0) -> LinearProgram:
        """The program; with free variables the others are at least 0 by rows of their own."""
        c = torch.cat(self._costs)
        bounded = torch.tensor([not free for free in self._free])
        some_free = not bool(bounded.all())
        if some_free:
            columns = bounded.nonzero()[:, 0]
            self.at_most(c.new_zeros(len(columns)), (columns, -c.new_ones(())))
        A, b = self._inequalities.matrix(len(c))
        E, h = self._equalities.matrix(len(c)) if self._equalities.sides else (None, None)
        return LinearProgram(c, A, b, E, h, not some_free, offset)


class _Rows:
    """Rows of a sparse matrix and their right sides."""

    def __init__(self) -> None:
        self.sides: list[Tensor] = []
        self._entries: list[tuple[Tensor, Tensor, Tensor]] = []
        self._count = 0

    def add(self, side: Tensor, entries: tuple[Entry, ...]) -> None:
        rows = self._count + torch.arange(len(side))
        for columns, values in entries:
            coefficients = values.to(side.dtype).expand(len(side))
            self._entries.append((rows, columns.expand(len(side)), coefficients))
        self.sides.append(side)
        self._count += len(side)

    def add_sum(self, side: Tensor | float, entries: tuple[Entry, ...]) -> None:
        for columns, values in entries:
            row = torch.full_like(columns, self._count)
            self._entries.append((row, columns, values.expand(len(columns))))
        like = entries[0][1]
        self.sides.append(torch.as_tensor(side, dtype=like.dtype, device=like.device).reshape(1))
        self._count += 1

    def matrix(self, columns: int) -> tuple[Tensor, Tensor]:
        rows, places, values = (torch.cat(x) for x in zip(*self._entries, strict=True))
        where = torch.stack([rows, places]).to(values.device)
        shape = (self._count, columns)
        matrix = torch.sparse_coo_tensor(where, values, shape, check_invariants=True)
        return matrix, torch.cat(self.sides)


@dataclass(frozen=True)
class TwoClasses:
    """The examples with a weight, by class, in float64; the scores stay in the graph.

    Attributes:
        high: Scores of the positives.
        low: Scores of the negatives.
        high_weights: Weights of the positives.
        low_weights: Weights of the negatives.
    """

    high: Tensor
    low: Tensor
    high_weights: Tensor
    low_weights: Tensor

    @classmethod
    def of(cls, scores: Tensor, positives: Tensor, negatives: Tensor) -> TwoClasses:
        """The two classes, by where their weights are positive; all ``[n]``."""
        high, low = positives > 0, negatives > 0
        return cls(scores[high], scores[low], positives[high], negatives[low])

    @property
    def differences(self) -> Tensor:
        """``f_i - f_j`` for every pair; the negatives vary fastest."""
        return (self.high[:, None] - self.low).reshape(-1)

    @property
    def positives(self) -> Tensor:
        """The weight of all positives, ``[1]``."""
        return self.high_weights.sum().reshape(1)

    @property
    def pair_weights(self) -> Tensor:
        """The share of each pair in the mean."""
        high, low = self.high_weights, self.low_weights
        return (high[:, None] * low).reshape(-1) / (high.sum() * low.sum())
