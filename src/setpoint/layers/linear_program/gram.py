"""Newton's matrix of the penalty, and its solves: dense batches in torch, sparse ones in scipy.

``H = weight (A_J' A_J + E' E) + D``, where ``J`` are the violated rows, and ``D`` is diagonal: the
violated bounds, and a ridge that keeps ``H`` regular. For sparse programs the members stand in one
block-diagonal matrix; long rows (an equality over all variables, say) are kept as rows of an
augmented system, since their squares would fill it.
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
from setpoint.layers.linear_program.sketch import Sketch

LONG = 64  # entries of a row that is worth a row of its own


def newton_direction(
    program: Program,
    rows: Tensor,
    weight: float,
    diagonal: Tensor,
    gradient: Tensor,
    sketch: Sketch | None = None,
) -> Tensor:
    """``-H^-1 gradient``, where ``rows`` says which are violated and ``diagonal`` is ``D``."""
    if program.is_sparse:
        return _sparse_direction(program, rows, weight, diagonal, gradient)
    A, E = program.A.values, program.E.values
    H = (A * rows[:, :, None]).mT @ A if sketch is None else sketch.gram(A, rows)
    if E.shape[1]:
        H += E.mT @ E
    H *= weight
    H.diagonal(dim1=1, dim2=2).add_(diagonal)
    factor, failed = torch.linalg.cholesky_ex(H)
    if failed.any():  # rounding: H is positive definite by its ridge
        H.diagonal(dim1=1, dim2=2).add_(1e-12 * weight)
        factor, _ = torch.linalg.cholesky_ex(H)
    return -torch.cholesky_solve(gradient[..., None], factor)[..., 0]


def _sparse_direction(
    program: Program, rows: Tensor, weight: float, diagonal: Tensor, gradient: Tensor
) -> Tensor:
    A = _blocks(program.A)[rows.cpu().numpy().ravel()]
    both = csr_array(_stacked(A, _blocks(program.E)))
    long = np.diff(both.indptr) > LONG
    short, rest = both[~long], both[long]
    H = weight * (short.T @ short) + diags_array(diagonal.cpu().numpy().ravel())
    right = -gradient.cpu().numpy().ravel()
    if rest.shape[0]:
        H = block_array([[H, rest.T], [rest, -eye_array(rest.shape[0]) / weight]])
        right = np.concatenate([right, np.zeros(rest.shape[0])])
    H = H.tocsc()
    if H.nnz == H.shape[0]:  # every constraint bounds one variable: nothing to factor
        step = right / H.diagonal()
    else:
        step = splu(H, permc_spec="MMD_AT_PLUS_A").solve(right)[: gradient.numel()]
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
