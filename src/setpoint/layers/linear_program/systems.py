"""The square linear systems of vertices: ``M z = r`` forwards, ``M' u = g`` backwards.

``M`` holds the chosen inequalities, all equalities, and the chosen bounds. A batch of dense
programs is factored at once; a single or sparse one without the columns fixed by its bounds. The
programs must be scaled: otherwise small pivots say nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csc_array, csr_array, issparse, vstack
from scipy.sparse.csgraph import structural_rank
from scipy.sparse.linalg import splu
from torch import Tensor

from setpoint.layers.linear_program.program import Program

SINGULAR = 1e-11  # a pivot below this share of the largest is zero, in a scaled program


def is_square(program: Program, rows: Tensor, bounds: Tensor) -> Tensor:
    """Which members have as many chosen constraints as variables, ``[batch]``."""
    return rows.sum(1) + bounds.sum(1) + program.h.shape[1] == program.c.shape[1]


class Vertices:
    """Factored systems of square members; ``regular`` says which could be factored."""

    def __init__(self, program: Program, rows: Tensor, bounds: Tensor) -> None:
        self.program, self.rows, self.bounds = program, rows, bounds
        self.regular = torch.ones(program.members, dtype=torch.bool, device=rows.device)
        self._one: list[_Reduced] = []
        if program.is_sparse or program.members == 1:
            self._one = [_Reduced(program, rows[i], bounds[i], i) for i in range(program.members)]
            good = [one.regular for one in self._one]
            self.regular = torch.tensor(good, dtype=torch.bool, device=rows.device)
            return
        A, E, n = program.A.values, program.E.values, program.c.shape[1]
        always = torch.ones_like(program.h, dtype=torch.bool)
        self._chosen = torch.cat([rows, always, bounds], 1).nonzero()[:, 1].reshape(-1, n)
        eye = torch.eye(n, dtype=A.dtype, device=A.device).expand(len(A), n, n)
        every = torch.cat([A, E, eye], 1) if program.nonnegative else torch.cat([A, E], 1)
        M = every.gather(1, self._chosen[:, :, None].expand(-1, -1, n))
        self._lu, self._pivots, _ = torch.linalg.lu_factor_ex(M)
        pivots = self._lu.diagonal(dim1=1, dim2=2).abs()
        self.regular = pivots.amin(1) > SINGULAR * pivots.amax(1)

    def solve(self, b: Tensor, h: Tensor) -> Tensor:
        """``z`` where the chosen constraints hold with these right sides."""
        if self._one:
            return _stack([one.solve(b[i], h[i]) for i, one in enumerate(self._one)], b)
        zeros = torch.zeros_like(self.program.c)
        right = torch.cat([b, h, zeros], 1).gather(1, self._chosen)
        z: Tensor = torch.linalg.lu_solve(self._lu, self._pivots, right[..., None])[..., 0]
        return z

    def transposed(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """The ``u`` of ``M' u = g`` for the inequalities and the equalities."""
        m, p = self.program.b.shape[1], self.program.h.shape[1]
        if self._one:
            u = _stack([one.transposed(g[i]) for i, one in enumerate(self._one)], g)
        else:
            right = g[..., None]
            chosen = torch.linalg.lu_solve(self._lu, self._pivots, right, adjoint=True)[..., 0]
            u = g.new_zeros(len(g), m + p + g.shape[1]).scatter(1, self._chosen, chosen)
        return u[:, :m], u[:, m : m + p]


class _Reduced:
    """One member's system without the variables that sit at their bound."""

    def __init__(self, program: Program, rows: Tensor, bounds: Tensor, i: int) -> None:
        self.m, self.n = len(rows), len(bounds)
        self.rows = rows.cpu().numpy().nonzero()[0]
        self.free = (~bounds).cpu().numpy().nonzero()[0]
        A, E = program.A.member(i)[self.rows][:, self.free], program.E.member(i)[:, self.free]
        sparse = issparse(A) or issparse(E)
        M = vstack([csc_array(A), csc_array(E)]).tocsc() if sparse else np.concatenate([A, E])
        self._solve = _factor(M)
        self.regular = self._solve is not None

    def solve(self, b: Tensor, h: Tensor) -> Any:
        z = np.zeros(self.n)
        if self._solve is not None:
            right = np.concatenate([b.cpu().numpy()[self.rows], h.cpu().numpy()])
            z[self.free] = self._solve(right, False)
        return z

    def transposed(self, g: Tensor) -> Any:
        count = len(self.free) - len(self.rows)
        u = np.zeros(self.m + count)
        if self._solve is not None:
            chosen = self._solve(g.cpu().numpy()[self.free], True)
            u[self.rows], u[self.m :] = np.split(chosen, [len(self.rows)])
        return u


def _factor(M: Any) -> Any:
    """``solve(right, transposed)``, or ``None`` if the matrix is singular."""
    if not M.shape[0]:
        return lambda right, transposed: right
    if issparse(M):
        if structural_rank(csr_array(M)) < M.shape[0]:  # SuperLU may corrupt memory on these
            return None
        if M.nnz == M.shape[0]:
            return _permuted(csc_array(M))
        try:
            factor = splu(csc_array(M))
        except RuntimeError:  # "Factor is exactly singular"
            return None
        if not _is_regular(factor.U.diagonal()):
            return None
        return lambda right, transposed: factor.solve(right, "T" if transposed else "N")
    lu, pivots, _ = torch.linalg.lu_factor_ex(torch.from_numpy(M))
    if not _is_regular(lu.diagonal().numpy()):
        return None

    def solve(right: Any, transposed: bool) -> Any:
        column = torch.from_numpy(right)[:, None]
        return torch.linalg.lu_solve(lu, pivots, column, adjoint=transposed)[:, 0].numpy()

    return solve


def _permuted(M: Any) -> Any:
    """The same for a matrix with one entry in every row and column."""
    if not _is_regular(M.data):
        return None

    def solve(right: Any, transposed: bool) -> Any:
        if not transposed:
            return right[M.indices] / M.data
        out = np.empty_like(right)
        out[M.indices] = right / M.data
        return out

    return solve


def _is_regular(pivots: Any) -> bool:
    size = np.abs(pivots)
    return bool(size.min() > SINGULAR * size.max())


def _stack(rows: list[Any], like: Tensor) -> Tensor:
    return torch.from_numpy(np.stack(rows)).to(like)
