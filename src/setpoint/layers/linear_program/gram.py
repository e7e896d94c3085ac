"""Newton's matrix of the penalty, and its solves: dense batches in torch, sparse ones in scipy.

``H = ridge I + weight (A_J' A_J + E' E + I_N)``, where ``J`` are the violated rows and ``N`` the
violated bounds. For sparse programs the members stand in one block-diagonal matrix; long rows
(an equality over all variables, say) are kept as rows of an augmented system, since their squares
would fill it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import block_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu
from torch import Tensor

from setpoint.layers.linear_program.matrix import Matrix
from setpoint.layers.linear_program.program import Program

LONG = 64  # entries of a row that is worth a row of its own


def newton_direction(
    program: Program, rows: Tensor, bounds: Tensor, weight: float, ridge: float, gradient: Tensor
) -> Tensor:
    """``-H^-1 gradient`` with the violated ``rows`` and ``bounds`` (booleans)."""
    if program.is_sparse:
        return _sparse_direction(program, rows, bounds, weight, ridge, gradient)
    A, E = program.A.values, program.E.values
    H = (A * rows[:, :, None]).mT @ A
    if E.shape[1]:
        H += E.mT @ E
    H *= weight
    H.diagonal(dim1=1, dim2=2).add_(weight * bounds + ridge)
    factor, failed = torch.linalg.cholesky_ex(H)
    if failed.any():  # rounding: H is positive definite by its ridge
        H.diagonal(dim1=1, dim2=2).add_(1e-12 * weight)
        factor, _ = torch.linalg.cholesky_ex(H)
    return -torch.cholesky_solve(gradient[..., None], factor)[..., 0]


def _sparse_direction(
    program: Program, rows: Tensor, bounds: Tensor, weight: float, ridge: float, gradient: Tensor
) -> Tensor:
    A = _blocks(program.A)[rows.cpu().numpy().ravel()]
    both = csr_array(_stacked(A, _blocks(program.E)))
    long = np.diff(both.indptr) > LONG
    short, rest = both[~long], both[long]
    diagonal = weight * bounds.cpu().numpy().ravel() + ridge
    H = weight * (short.T @ short) + diags_array(diagonal)
    right = -gradient.cpu().numpy().ravel()
    if rest.shape[0]:
        H = block_array([[H, rest.T], [rest, -eye_array(rest.shape[0]) / weight]])
        right = np.concatenate([right, np.zeros(rest.shape[0])])
    factor = splu(H.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    step = factor.solve(right)[: gradient.numel()]
    return torch.from_numpy(step).to(gradient).reshape(gradient.shape)


def _stacked(A: Any, E: Any) -> Any:
    return block_array([[A], [E]], format="csr") if E.shape[0] else A


def _blocks(matrix: Matrix) -> Any:
    """All members along one diagonal."""
    members, (m, n) = matrix.values.shape[0], matrix.shape
    values = matrix.values.cpu().numpy()
    if matrix.row is None or matrix.column is None:
        row, column = np.indices((m, n)).reshape(2, -1)
        values = values.reshape(members, -1)
    else:
        row, column = matrix.row.cpu().numpy(), matrix.column.cpu().numpy()
    step = np.arange(members)[:, None]
    place = ((row + m * step).ravel(), (column + n * step).ravel())
    return csr_array((values.ravel(), place), shape=(m * members, n * members))
