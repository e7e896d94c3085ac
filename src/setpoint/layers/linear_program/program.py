"""A batch of linear programs of one shape: ``min c'z``, ``A z <= b``, ``E z = h``, ``z >= 0``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.layers.linear_program.matrix import Matrix


@dataclass(frozen=True)
class Program:
    """Checked programs in float64 with one batch dimension; nothing is missing, only empty.

    Attributes:
        c: Costs, ``[batch, n]``.
        A: Rows of the inequalities, ``[batch, m, n]``.
        b: Their right sides, ``[batch, m]``.
        E: Rows of the equalities, ``[batch, p, n]``.
        h: Their right sides, ``[batch, p]``.
        nonnegative: Whether ``z >= 0`` holds too.
        batch: The leading shape that was given.
    """

    c: Tensor
    A: Matrix
    b: Tensor
    E: Matrix
    h: Tensor
    nonnegative: bool
    batch: tuple[int, ...]

    @property
    def members(self) -> int:
        """How many programs there are."""
        return int(self.c.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether one of the matrices is."""
        return self.A.is_sparse or self.E.is_sparse

    def detach(self) -> Program:
        """The same programs without their history."""
        return replace(
            self,
            c=self.c.detach(),
            A=self.A.detach(),
            b=self.b.detach(),
            E=self.E.detach(),
            h=self.h.detach(),
        )

    def pick(self, members: Tensor) -> Program:
        """Some members of the batch, as a flat batch of their own."""
        return replace(
            self,
            c=self.c[members],
            A=self.A.pick(members),
            b=self.b[members],
            E=self.E.pick(members),
            h=self.h[members],
            batch=(int(members.numel()),),
        )

    def with_cost(self, c: Tensor) -> Program:
        """The same constraints with other costs."""
        return replace(self, c=c)

    def member(self, i: int) -> Member:
        """One program for scipy."""
        parts = (self.c, self.b, self.h)
        c, b, h = (x[i].detach().cpu().numpy() for x in parts)
        return Member(c, self.A.member(i), b, self.E.member(i), h, self.nonnegative)


@dataclass(frozen=True)
class Member:
    """One program in numpy; the matrices may be sparse arrays of scipy."""

    c: np.ndarray[Any, Any]
    A: Any
    b: np.ndarray[Any, Any]
    E: Any
    h: np.ndarray[Any, Any]
    nonnegative: bool


@dataclass(frozen=True)
class Solution:
    """What a solver found: where it is not optimal the numbers are zeros.

    The multipliers obey ``c + A' v + E' w - s = 0`` with ``v, s >= 0``.

    Attributes:
        z: Solutions, ``[batch, n]``.
        v: Multipliers of the inequalities, ``[batch, m]``.
        w: Multipliers of the equalities, ``[batch, p]``.
        s: Multipliers of ``z >= 0``, ``[batch, n]``.
        status: One word for each member: optimal, infeasible, unbounded or unsolved.
        solver: Which solver found it, for each member.
        iterations: How many steps it took, for each member.
    """

    z: Tensor
    v: Tensor
    w: Tensor
    s: Tensor
    status: tuple[str, ...]
    solver: tuple[str, ...]
    iterations: tuple[int, ...]

    @property
    def optimal(self) -> Tensor:
        """Which members are solved, ``[batch]``."""
        solved = [word == "optimal" for word in self.status]
        return torch.tensor(solved, dtype=torch.bool, device=self.z.device)
