"""Which constraints are active at a solution, and how the solution moves with them.

At a vertex the tight rows alone determine the solution: ``M z = r``, where ``M`` keeps the tight
inequalities, all equalities, and the columns of variables that are not at their bound. So when
``M`` and ``r`` move, ``M dz = dr - dM z``, and for a gradient ``g`` of a loss by ``z`` one vector
``u`` with ``M' u = g`` carries everything: ``dL/dr = u``, ``dL/dM = -u z'`` (Meng et al. 2021,
section 4.2, without the ridge of the published code, which biases both by 1 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csc_array, csr_array, issparse, vstack
from scipy.sparse.csgraph import structural_rank
from scipy.sparse.linalg import lsmr, splu
from torch import Tensor

from setpoint.programs.standard_form import ProgramBatch, SolutionBatch, equilibrate

TIGHT = 1e-9  # a slack below this share of its own terms is zero
TIGHT_FLOOR = 1e-12  # and so is one below this share of its row
ZERO_PIVOT = 1e-11  # a pivot below this share of the largest is zero, in a scaled program


@dataclass(frozen=True)
class ActiveSet:
    """Where constraints have no slack, and where their multiplier is positive.

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


def active_set_of(program: ProgramBatch, found: SolutionBatch) -> ActiveSet:
    """The active constraints of solved programs; none for a member without a solution."""
    A, z = program.A.size(), found.z.abs()
    slack = program.b - program.A.times(found.z)
    largest = z.amax(1, keepdim=True).clamp(min=1)
    room = TIGHT * (A.times(z) + program.b.abs()) + TIGHT_FLOOR * A.times(largest.expand_as(z))
    terms = program.c.abs() + A.adjoint(found.v) + program.E.size().adjoint(found.w.abs()) + found.s
    share = torch.where(terms > 0, 1 / terms.clamp(min=torch.finfo(terms.dtype).tiny), 0)
    optimal = found.optimal[:, None]
    at_zero = (
        (z <= TIGHT * largest) if program.nonnegative else torch.zeros_like(z, dtype=torch.bool)
    )
    return ActiveSet(
        (slack <= room) & optimal,
        at_zero & optimal,
        (A.scale(found.v, share).largest(1) > TIGHT) & optimal,
        (found.s * share > TIGHT) & optimal,
    )


def follow(program: ProgramBatch, near: ActiveSet, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients by ``b`` and ``h``, from the gradient by ``z``.

    The rows with a positive multiplier are taken if they alone determine the solution. Otherwise
    (degenerate, or not unique) all tight rows share it in the sense of least squares: one
    generalized derivative among others.
    """
    program, scales = equilibrate(program)
    gradient = gradient * scales.columns
    by_b, by_h = torch.zeros_like(program.b), torch.zeros_like(program.h)
    left = gradient.any(1)
    square = left & is_square(program, near.support, near.support_bounds)
    if square.any():
        rows, bounds = near.support[square], near.support_bounds[square]
        vertices = Vertices(program.pick(square), rows, bounds)
        members = square.nonzero()[vertices.regular, 0]
        u, w = vertices.solve_transposed(gradient[square])
        by_b[members], by_h[members] = u[vertices.regular], w[vertices.regular]
        left[members] = False
    for i in left.nonzero()[:, 0].tolist():
        by_b[i], by_h[i] = least_squares(program, near, i, gradient[i])
    return by_b * scales.rows, by_h * scales.equal


def least_squares(
    program: ProgramBatch, near: ActiveSet, i: int, g: Tensor
) -> tuple[Tensor, Tensor]:
    """The shortest ``u`` that comes nearest to ``M' u = g`` over all tight rows of a member."""
    rows = near.tight[i].cpu().numpy().nonzero()[0]
    free = (~near.tight_bounds[i]).cpu().numpy().nonzero()[0]
    A, E = program.A.member(i)[rows][:, free], program.E.member(i)[:, free]
    right = g.cpu().numpy()[free]
    if issparse(A) or issparse(E):
        M = vstack([csr_array(A), csr_array(E)])
        u = lsmr(M.T, right, atol=1e-14, btol=1e-14, conlim=0, maxiter=20 * max(M.shape))[0]
    else:
        u = np.linalg.lstsq(np.concatenate([A, E]).T, right, rcond=1e-11)[0]
    by_b = np.zeros(program.b.shape[1])
    by_b[rows], by_h = np.split(u, [len(rows)])
    return torch.from_numpy(by_b).to(g), torch.from_numpy(by_h).to(g)


def is_square(program: ProgramBatch, rows: Tensor, bounds: Tensor) -> Tensor:
    """Which members have as many chosen constraints as variables, ``[batch]``."""
    return rows.sum(1) + bounds.sum(1) + program.h.shape[1] == program.c.shape[1]


class Vertices:
    """The square linear systems of vertices: ``M z = r``, and ``M' u = g``.

    ``M`` holds the chosen inequalities, all equalities, and the chosen bounds. Dense programs are
    factored together; sparse ones one by one, without the columns that bounds fix at zero.

    Args:
        program: Square members (:func:`is_square`), scaled: otherwise small pivots say nothing.
        rows: The chosen inequalities, ``[batch, m]``.
        bounds: The chosen bounds, ``[batch, n]``.

    Attributes:
        regular: Which systems could be factored, ``[batch]``.
    """

    def __init__(self, program: ProgramBatch, rows: Tensor, bounds: Tensor) -> None:
        self.program = program
        self._sparse: list[_SparseVertex] = []
        if program.is_sparse:
            every = range(program.members)
            self._sparse = [_SparseVertex(program, rows[i], bounds[i], i) for i in every]
            good = [one.solve is not None for one in self._sparse]
            self.regular = torch.tensor(good, dtype=torch.bool, device=rows.device)
            return
        A, E, n = program.A.values, program.E.values, program.c.shape[1]
        always = torch.ones_like(program.h, dtype=torch.bool)
        self._chosen = torch.cat([rows, always, bounds], 1).nonzero()[:, 1].reshape(-1, n)
        eye = torch.eye(n, dtype=A.dtype, device=A.device).expand(len(A), n, n)
        every_row = torch.cat([A, E, eye], 1)
        M = every_row.gather(1, self._chosen[:, :, None].expand(-1, -1, n))
        self._lu, self._pivots, _ = torch.linalg.lu_factor_ex(M)
        pivots = self._lu.diagonal(dim1=1, dim2=2).abs()
        self.regular = pivots.amin(1) > ZERO_PIVOT * pivots.amax(1)

    def solve(self, b: Tensor, h: Tensor) -> Tensor:
        """The ``z`` of ``M z = r``, where ``r`` has these right sides, ``[batch, n]``."""
        if self.program.is_sparse:
            return _to_tensor([one.forward(b[i], h[i]) for i, one in enumerate(self._sparse)], b)
        zeros = torch.zeros_like(self.program.c)
        right = torch.cat([b, h, zeros], 1).gather(1, self._chosen)
        z: Tensor = torch.linalg.lu_solve(self._lu, self._pivots, right[..., None])[..., 0]
        return z

    def solve_transposed(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """The ``u`` of ``M' u = g``: its parts for the inequalities and for the equalities."""
        m, p = self.program.b.shape[1], self.program.h.shape[1]
        if self.program.is_sparse:
            u = _to_tensor([one.transposed(g[i]) for i, one in enumerate(self._sparse)], g)
        else:
            right = g[..., None]
            chosen = torch.linalg.lu_solve(self._lu, self._pivots, right, adjoint=True)[..., 0]
            u = g.new_zeros(len(g), m + p + g.shape[1]).scatter(1, self._chosen, chosen)
        return u[:, :m], u[:, m : m + p]


class _SparseVertex:
    """The system of one sparse member, without the variables that are at their bound.

    Attributes:
        solve: A function of the right side and of ``"N"`` or ``"T"`` (transposed); ``None`` if the
            matrix is singular, and the solutions are then zeros.
    """

    def __init__(self, program: ProgramBatch, rows: Tensor, bounds: Tensor, i: int) -> None:
        self.m, self.p, self.n = len(rows), program.h.shape[1], len(bounds)
        self.rows = rows.cpu().numpy().nonzero()[0]
        self.free = (~bounds).cpu().numpy().nonzero()[0]
        A, E = program.A.member(i)[self.rows][:, self.free], program.E.member(i)[:, self.free]
        self.solve = _factor(vstack([csc_array(A), csc_array(E)]).tocsc())

    def forward(self, b: Tensor, h: Tensor) -> Any:
        z = np.zeros(self.n)
        if self.solve is not None:
            right = np.concatenate([b.cpu().numpy()[self.rows], h.cpu().numpy()])
            z[self.free] = self.solve(right, "N")
        return z

    def transposed(self, g: Tensor) -> Any:
        u = np.zeros(self.m + self.p)
        if self.solve is not None:
            chosen = self.solve(g.cpu().numpy()[self.free], "T")
            u[self.rows], u[self.m :] = np.split(chosen, [len(self.rows)])
        return u


def _factor(M: Any) -> Any:
    """A function ``solve(right, "N" or "T")``, or ``None`` if the sparse matrix is singular."""
    if not M.shape[0]:
        return lambda right, _: right
    if structural_rank(csr_array(M)) < M.shape[0]:  # SuperLU may corrupt memory on these
        return None
    try:
        factor = splu(M)
    except RuntimeError:  # "Factor is exactly singular"
        return None
    size = np.abs(factor.U.diagonal())
    return factor.solve if size.min() > ZERO_PIVOT * size.max() else None


def _to_tensor(rows: list[Any], like: Tensor) -> Tensor:
    return torch.from_numpy(np.stack(rows)).to(like)
