"""How good a solution is, whether it is the only one, and whether it has a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack
from torch import Tensor

from setpoint.layers.linear_program.active import Active
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.scaling import equilibrate
from setpoint.layers.linear_program.systems import Vertices, is_square

APART = 1e-6  # how far, in a unit box, another solution must be to be one


def gap(program: Program, found: Solution) -> Tensor:
    """Primal minus dual value, relative to the largest of their parts or 1, ``[batch]``."""
    parts = (program.c * found.z, program.b * found.v, program.h * found.w)
    size = torch.stack([x.abs().sum(1) for x in parts]).amax(0).clamp(min=1)
    return torch.stack([x.sum(1) for x in parts]).sum(0).abs() / size


def primal_residual(program: Program, found: Solution) -> Tensor:
    """The largest violation of a constraint, relative to its own terms or 1, ``[batch]``."""
    z, A, E = found.z.abs(), program.A.size(), program.E.size()
    over = (program.A.times(found.z) - program.b).clamp(min=0)
    off = (program.E.times(found.z) - program.h).abs()
    over = over / (A.times(z) + program.b.abs()).clamp(min=1)
    off = off / (E.times(z) + program.h.abs()).clamp(min=1)
    below = (-found.z).clamp(min=0) if program.nonnegative else torch.zeros_like(found.z)
    return torch.cat([over, off, below], 1).amax(1)


def dual_residual(program: Program, found: Solution) -> Tensor:
    """The largest entry of ``c + A'v + E'w - s``, relative to its own terms or 1, ``[batch]``."""
    rest = program.c + program.A.adjoint(found.v) + program.E.adjoint(found.w) - found.s
    size = program.c.abs() + program.A.size().adjoint(found.v) + found.s
    size = size + program.E.size().adjoint(found.w.abs())
    return (rest.abs() / size.clamp(min=1)).amax(1)


def degenerate(program: Program, found: Solution, near: Active) -> Tensor:
    """Where tight rows are not as many as variables, or one of them does not matter, ``[batch]``.

    There the solution has no derivative: it leaves along different rows in different directions.
    """
    same = (near.tight == near.support).all(1) & (near.tight_bounds == near.support_bounds).all(1)
    return ~(same & _regular(program, near)) & found.optimal


def unique(program: Program, found: Solution, near: Active) -> Tensor:
    """Where no other point has the same cost, ``[batch]``; false where there is no solution."""
    only = _regular(program, near) & found.optimal
    for i in (found.optimal & ~only).nonzero()[:, 0].tolist():
        only[i] = not _has_another(program, near, i)
    return only


def _regular(program: Program, near: Active) -> Tensor:
    """Where the rows with a multiplier alone determine the solution."""
    square = is_square(program, near.support, near.support_bounds)
    if square.any():
        rows, bounds = near.support[square], near.support_bounds[square]
        scaled, _ = equilibrate(program.pick(square))
        square[square.clone()] = Vertices(scaled, rows, bounds).regular
    return square


def _has_another(program: Program, near: Active, i: int) -> bool:
    """Whether one can leave the solution without violating a constraint or changing the cost.

    Rows with a multiplier must stay tight, other tight rows may open. If such directions exist at
    all, a random linear function is not zero on them: maximise one, and its opposite.
    """
    one = program.member(i)
    rows, bounds, support, support_bounds = (
        x[i].cpu().numpy()
        for x in (near.tight, near.tight_bounds, near.support, near.support_bounds)
    )
    stay = vstack([csr_array(one.A[support]), csr_array(one.E)])
    may = csr_array(one.A[rows & ~support])
    low = np.where(bounds, 0.0, -1.0)
    high = np.where(support_bounds, 0.0, 1.0)
    pull = np.random.default_rng(0).normal(size=len(one.c))
    return any(_reach(sign * pull, may, stay, low, high) > APART for sign in (1, -1))


def _reach(pull: Any, may: Any, stay: Any, low: Any, high: Any) -> float:
    answer = linprog(
        -pull,
        may if may.shape[0] else None,
        np.zeros(may.shape[0]) if may.shape[0] else None,
        stay if stay.shape[0] else None,
        np.zeros(stay.shape[0]) if stay.shape[0] else None,
        bounds=np.stack([low, high], 1),
        method="highs",
    )
    return float(-answer.fun) if answer.status == 0 else 0.0
