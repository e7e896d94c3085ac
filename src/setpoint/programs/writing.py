"""A linear program as plain tensors, and what it is written with: rows, and two classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from setpoint.batch import describe
from setpoint.losses.base import check_loss_scores, read_loss_batch


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


class RowBuilder:
    """Collects rows of a sparse matrix and their right sides, block by block."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self._entries: list[tuple[Tensor, Tensor, Tensor]] = []
        self._sides: list[Tensor] = []

    def add(self, side: Tensor, *entries: tuple[Tensor, Tensor]) -> None:
        """A block of ``len(side)`` rows; each entry is columns and values, ``[rows]`` or one."""
        rows = self.count + torch.arange(len(side))
        for columns, values in entries:
            columns, values = (x.expand(len(side)) for x in (columns, values))
            self._entries.append((rows, columns, values.to(side.dtype)))
        self._sides.append(side)
        self.count += len(side)

    def sum(self, side: float, columns: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """One row with these values in these columns."""
        where, what = torch.cat(list(columns)), torch.cat(list(values))
        row = torch.full_like(where, self.count)
        self._entries.append((row, where, what))
        self._sides.append(what.new_full((1,), side))
        self.count += 1

    def at_least_zero(self, *columns: Tensor) -> None:
        """One row per variable, which says that it is at least 0."""
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


def read_two_classes(scores: Tensor, labels: Tensor, weights: Tensor | None) -> TwoClasses:
    """The batch of one output, checked as the losses check it; raises if a class is missing."""
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
    return split_classes(scores.reshape(-1).double(), *batch.columns[0].unbind(-1))


def split_classes(scores: Tensor, positives: Tensor, negatives: Tensor) -> TwoClasses:
    """The two classes, by where their weights are positive."""
    high, low = positives > 0, negatives > 0
    return TwoClasses(scores[high], scores[low], positives[high], negatives[low])
