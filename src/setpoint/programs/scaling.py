"""Scale rows, columns, costs and right sides to near 1 before solving, and the solution back.

Solvers compare with fixed tolerances: a row of entries near 1e-6 would be ignored. All
factors are powers of two, so that scaling itself rounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint.programs.standard_form import ProgramBatch, SolutionBatch

RUIZ_ROUNDS = 4  # each halves the distance of the exponents from 0


@dataclass(frozen=True)
class Scales:
    """The factors of the rows of ``A`` and ``E``, the columns, the costs and the right sides."""

    rows: Tensor
    equal: Tensor
    columns: Tensor
    cost: Tensor
    right: Tensor

    def unscale(self, found: SolutionBatch) -> SolutionBatch:
        """The solution of the program before it was scaled."""
        return replace(
            found,
            z=found.z * self.columns / self.right,
            v=found.v * self.rows / self.cost,
            w=found.w * self.equal / self.cost,
            s=found.s / self.columns / self.cost,
        )


def equilibrate(program: ProgramBatch) -> tuple[ProgramBatch, Scales]:
    """The program with largest entries near 1 in every row and column, and the factors."""
    A, E = program.A, program.E
    rows, equal = torch.ones_like(program.b), torch.ones_like(program.h)
    columns = torch.ones_like(program.c)
    for _ in range(RUIZ_ROUNDS):
        by_row, by_equal = A.largest(1), E.largest(1)
        by_column = torch.maximum(A.largest(0), E.largest(0))
        factors = [_inverse(x.sqrt()) for x in (by_row, by_equal, by_column)]
        A, E = A.scale(factors[0], factors[2]), E.scale(factors[1], factors[2])
        rows, equal, columns = rows * factors[0], equal * factors[1], columns * factors[2]
    last = _inverse(A.largest(1)), _inverse(E.largest(1))  # rows last: residuals are compared
    ones = torch.ones_like(columns)
    A, E = A.scale(last[0], ones), E.scale(last[1], ones)
    rows, equal = rows * last[0], equal * last[1]
    c, b, h = program.c * columns, program.b * rows, program.h * equal
    cost = _inverse(_largest_entry(c))
    right = _inverse(torch.maximum(_largest_entry(b), _largest_entry(h)))
    scaled = replace(program, c=c * cost, A=A, b=b * right, E=E, h=h * right)
    return scaled, Scales(rows, equal, columns, cost, right)


def _inverse(size: Tensor) -> Tensor:
    """One over the nearest power of two; 1 for what is zero."""
    return torch.where(size > 0, torch.exp2(-size.log2().round()), 1.0)


def _largest_entry(x: Tensor) -> Tensor:
    return x.abs().amax(1, keepdim=True) if x.shape[1] else x.new_zeros(x.shape[0], 1)
