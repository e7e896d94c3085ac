"""Which constraints hold a solution in place, and how the solution follows them.

At a vertex the tight rows alone determine the solution: ``M z = r``, where ``M`` keeps the tight
inequalities, all equalities, and the columns of variables that do not sit at their bound. So when
``M`` and ``r`` move, ``M dz = dr - dM z``, and for a gradient ``g`` of a loss by ``z`` one vector
``u`` with ``M' u = g`` carries everything: ``dL/dr = u``, ``dL/dM = -u z'`` (Meng et al. 2021,
section 4.2, without the ridge of the published code, which biases both by 1 %).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array, issparse, vstack
from scipy.sparse.linalg import lsmr
from torch import Tensor

from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.scaling import equilibrate
from setpoint.layers.linear_program.systems import Vertices, is_square

TIGHT = 1e-9  # a slack below this share of its own terms is zero
FLOOR = 1e-12  # and so is one below this share of its row


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
        (A.scale(found.v, share).largest(1) > TIGHT) & optimal,
        (found.s * share > TIGHT) & optimal,
    )


def follow(program: Program, near: Active, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients by ``b`` and ``h`` when the active constraints carry the one by ``z``.

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
        u, w = vertices.transposed(gradient[square])
        by_b[members], by_h[members] = u[vertices.regular], w[vertices.regular]
        left[members] = False
    for i in left.nonzero()[:, 0].tolist():
        by_b[i], by_h[i] = least_squares(program, near, i, gradient[i])
    return by_b * scales.rows, by_h * scales.equal


def least_squares(program: Program, near: Active, i: int, g: Tensor) -> tuple[Tensor, Tensor]:
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
