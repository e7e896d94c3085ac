"""The method as published, for comparison: full Newton steps, unrolled, and a ridge.

Meng et al. (2021), equations 3 to 5 with the numbers of their code: twenty full steps on
``|max(A y - b, 0)|^2 / 2 + eps c'y``, the rows that are then violated taken for the active ones,
and ``z = (A_J' A_J + ridge I)^-1 A_J' b_J``. Every step is in the graph, but gradients pass only
through that last line: which rows are violated is an index, and has none. The ridge shortens values
and gradients by 1 %, and without a line search most programs do not converge: ``info.status`` says
which.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.programs.newton import Sketch
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch

PENALTY, SHIFT, FIRST_RIDGE, LAST_RIDGE, FULL_STEPS = 1e-3, 1e-4, 1e-3, 1e-2, 20
CONVERGED = 1e-2  # residuals below this, at a scale of 1: the ridge allows no less


def solve_unrolled(
    program: ProgramBatch, sketch: Sketch | None = None
) -> tuple[Tensor, SolutionBatch]:
    """Solutions by twenty full Newton steps and a ridge solve, in the graph and as a record.

    With a sketch every step sees a sample of the rows (equations 6 and 7, with the residual where
    the paper's equation 6 has a step function).
    """
    A, b = _as_inequalities(program)
    n = program.c.shape[1]
    y = _ridge_least_squares(A[:, :n], b[:, :n], FIRST_RIDGE)
    for _ in range(FULL_STEPS):
        rows, right = (A, b) if sketch is None else sketch.rows(A, b)
        over = (rows @ y[..., None])[..., 0] - right
        gradient = (over.clamp(min=0)[:, None] @ rows)[:, 0] + PENALTY * program.c
        y = y - _ridge_solve((rows * (over > 0)[..., None]).mT @ rows, gradient, SHIFT)
    v = ((A @ y[..., None])[..., 0] - b).clamp(min=0) / PENALTY
    on = (v > 0)[..., None]
    z = _ridge_least_squares(A * on, b * on[..., 0], LAST_RIDGE)
    return z, _as_solution(program.detach(), z.detach(), v.detach())


def _as_inequalities(program: ProgramBatch) -> tuple[Tensor, Tensor]:
    """Everything as ``A z <= b`` (section 3.1): an equality is two, a bound one more."""
    A, E, n = program.A.values, program.E.values, program.c.shape[1]
    rows, right = [A, E, -E], [program.b, program.h, -program.h]
    if program.nonnegative:
        rows.append(-torch.eye(n, dtype=A.dtype, device=A.device).expand(len(A), n, n))
        right.append(torch.zeros_like(program.c))
    return torch.cat(rows, 1), torch.cat(right, 1)


def _ridge_least_squares(A: Tensor, b: Tensor, ridge: float) -> Tensor:
    return _ridge_solve(A.mT @ A, (b[:, None] @ A)[:, 0], ridge)


def _ridge_solve(H: Tensor, right: Tensor, ridge: float) -> Tensor:
    eye = torch.eye(H.shape[-1], dtype=H.dtype, device=H.device)
    y: Tensor = torch.linalg.solve(H + ridge * eye, right)
    return y


def _as_solution(program: ProgramBatch, z: Tensor, v: Tensor) -> SolutionBatch:
    m, p = program.b.shape[1], program.h.shape[1]
    w = v[:, m : m + p] - v[:, m + p : m + 2 * p]
    s = v[:, m + 2 * p :] if program.nonnegative else torch.zeros_like(z)
    over = torch.cat([program.A.times(z) - program.b, (program.E.times(z) - program.h).abs()], 1)
    off = program.c + program.A.adjoint(v[:, :m]) + program.E.adjoint(w) - s
    scale = 1 + z.abs().amax(1)
    good = ~(over > CONVERGED * scale[:, None]).any(1) & (off.abs().amax(1) <= CONVERGED)
    words = tuple("optimal" if yes else "unsolved" for yes in good.tolist())
    count = len(words)
    return SolutionBatch(z, v[:, :m], w, s, words, ("published",) * count, (FULL_STEPS,) * count)
