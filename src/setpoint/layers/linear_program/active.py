"""Which constraints hold a solution in place, and how the solution follows them.

At a vertex the tight rows alone determine the solution: ``M z = r``, where ``M`` keeps the tight
inequalities, all equalities, and the columns of variables that do not sit at their bound. So when
``M`` and ``r`` move, ``M dz = dr - dM z``, and for a gradient ``g`` of a loss by ``z`` one vector
``u`` with ``M' u = g`` carries everything: ``dL/dr = u``, ``dL/dM = -u z'`` (Meng et al. 2021,
section 4.2, without the ridge of the published code, which biases both by 1 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse, vstack
from scipy.sparse.linalg import MatrixRankWarning, lsmr, splu
from torch import Tensor

from setpoint.layers.linear_program.matrix import Matrix
from setpoint.layers.linear_program.program import Program, Solution

TIGHT = 1e-9  # a slack below this share of its own terms is zero
FLOOR = 1e-12  # and so is one below this many units in the last place of its row


@dataclass(frozen=True)
class Active:
    """Where constraints are tight, and where a multiplier says that they matter.

    Attributes:
        tight: Inequalities without slack, ``[batch, m]``.
        tight_bounds: Variables at zero, if ``z >= 0``, ``[batch, n]``.
        support: Inequalities with a positive multiplier, ``[batch, m]``.
        support_bounds: Bounds with a positive multiplier, ``[batch, n]``.
    """

    tight: Tensor
    tight_bounds: Tensor
    support: Tensor
    support_bounds: Tensor


def active(program: Program, found: Solution) -> Active:
    """The active constraints of solved programs; nothing is active where a member is not."""
    A, z = program.A.size(), found.z.abs()
    slack = program.b - program.A.times(found.z)
    largest = z.amax(1, keepdim=True).clamp(min=1)
    room = TIGHT * (A.times(z) + program.b.abs()) + FLOOR * A.times(largest.expand_as(z))
    terms = program.c.abs() + A.adjoint(found.v) + program.E.size().adjoint(found.w.abs()) + found.s
    share = torch.where(terms > 0, 1 / terms.clamp(min=torch.finfo(terms.dtype).tiny), 0)
    optimal = found.optimal[:, None]
    at_zero = (
        (z <= TIGHT * largest) if program.nonnegative else torch.zeros_like(z, dtype=torch.bool)
    )
    return Active(
        (slack <= room) & optimal,
        at_zero & optimal,
        (found.v * _largest_in_row(A, share) > TIGHT) & optimal,
        (found.s * share > TIGHT) & optimal,
    )


def _largest_in_row(matrix: Matrix, weight: Tensor) -> Tensor:
    """The largest entry of each row after its columns have been weighted."""
    if matrix.row is None or matrix.column is None:
        return (matrix.values * weight[:, None, :]).amax(-1)
    entries = matrix.values * weight[:, matrix.column]
    out = entries.new_zeros(entries.shape[0], matrix.shape[0])
    return out.scatter_reduce_(1, matrix.row.expand_as(entries), entries, "amax")


def follow(program: Program, near: Active, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients by ``b`` and ``h`` when the active constraints carry the one by ``z``.

    The rows with a positive multiplier are taken if they alone determine the solution. Otherwise
    (degenerate, or not unique) all tight rows share it in the sense of least squares: one
    generalized derivative among others.
    """
    by_b, by_h = torch.zeros_like(program.b), torch.zeros_like(program.h)
    for i in range(program.members):
        g = gradient[i].cpu().numpy()
        if not g.any():
            continue
        rows, u = _follow_one(program, near, i, g)
        u = torch.from_numpy(u).to(by_b)
        rows = torch.from_numpy(rows).to(by_b.device)
        by_b[i, rows], by_h[i] = u[: len(rows)], u[len(rows) :]
    return by_b, by_h


def _follow_one(program: Program, near: Active, i: int, g: Any) -> tuple[Any, Any]:
    sets = ((near.support, near.support_bounds), (near.tight, near.tight_bounds))
    A, E = program.A.member(i), program.E.member(i)
    for chosen, bounds in sets:
        rows = chosen[i].cpu().numpy().nonzero()[0]
        free = (~bounds[i]).cpu().numpy().nonzero()[0]
        if chosen is near.support and len(rows) + len(program.h[i]) != len(free):
            continue
        M = _stack(A[rows][:, free], E[:, free])
        u = _transposed_solve(M, g[free], square=chosen is near.support)
        if u is not None:
            break
    return rows, u


def _stack(A: Any, E: Any) -> Any:
    if issparse(A) or issparse(E):
        return vstack([A, E]).tocsc()
    return np.concatenate([A, E])


def _transposed_solve(M: Any, g: Any, *, square: bool) -> Any:
    """The ``u`` with ``M' u = g``: exactly, ``None`` if ``M`` is singular, or by least squares."""
    if not square:
        if issparse(M):
            return lsmr(M.T, g, atol=1e-14, btol=1e-14, conlim=0, maxiter=20 * max(M.shape))[0]
        return np.linalg.lstsq(M.T, g, rcond=1e-11)[0]
    try:
        u = splu(M).solve(g, trans="T") if issparse(M) else np.linalg.solve(M.T, g)
    except (np.linalg.LinAlgError, RuntimeError, MatrixRankWarning):
        return None
    right = np.abs(M.T @ u - g).max(initial=0) <= 1e-7 * np.abs(g).max(initial=0)
    return u if right and np.isfinite(u).all() else None
