"""What is known about a solution: status, multipliers, optimality, uniqueness, degeneracy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from setpoint.programs.active_set import ActiveSet, Vertices, active_set_of, is_square
from setpoint.programs.highs import run_highs
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch, equilibrate

LEAST_DISTANCE = 1e-6  # the least distance, in a unit box, of another solution


@dataclass(frozen=True)
class ProgramInfo:
    """Status, multipliers and diagnostics of each solution, in the batch's own shape, detached.

    Everything beyond status and multipliers is computed when it is first read.

    Attributes:
        program: The programs as they were solved (float64, one batch dimension).
        found: Their solutions.
        rays: Per member the proof that it has no solution (see ``ProgramError``), or ``()``.
    """

    program: ProgramBatch
    found: SolutionBatch
    rays: tuple[tuple[Tensor, ...], ...]

    @property
    def status(self) -> tuple[str, ...]:
        """Per member ``optimal``, ``infeasible``, ``unbounded`` or ``unsolved``."""
        return self.found.status

    @property
    def solver(self) -> tuple[str, ...]:
        """Per member the name of the solver."""
        return self.found.solver

    @property
    def optimal(self) -> Tensor:
        """Which members have a solution."""
        return self._shaped(self.found.optimal)

    @property
    def solution(self) -> Tensor:
        """The solutions in float64, ``[..., n]``."""
        return self._shaped(self.found.z)

    @property
    def objective(self) -> Tensor:
        """The optimal values in float64."""
        return self._shaped((self.program.c * self.found.z).sum(1))

    @property
    def duals(self) -> Tensor:
        """Multipliers ``v >= 0`` of ``A z <= b``: what one unit of ``b`` would save."""
        return self._shaped(self.found.v)

    @property
    def equality_duals(self) -> Tensor:
        """Multipliers ``w`` of ``E z = h``: the value moves by ``-w`` with ``h``."""
        return self._shaped(self.found.w)

    @property
    def bound_duals(self) -> Tensor:
        """Multipliers of ``z >= 0``: the reduced costs."""
        return self._shaped(self.found.s)

    @cached_property
    def _active(self) -> ActiveSet:
        return active_set_of(self.program, self.found)

    @property
    def active(self) -> Tensor:
        """Inequalities without slack, ``[..., m]``."""
        return self._shaped(self._active.tight)

    @property
    def active_bounds(self) -> Tensor:
        """Variables at zero where ``z >= 0``, ``[..., n]``."""
        return self._shaped(self._active.tight_bounds)

    @cached_property
    def gap(self) -> Tensor:
        """Primal minus dual value, relative to the largest of their parts or 1.

        With no residuals, 0 proves optimality.
        """
        program, found = self.program, self.found
        parts = (program.c * found.z, program.b * found.v, program.h * found.w)
        size = torch.stack([x.abs().sum(1) for x in parts]).amax(0).clamp(min=1)
        return self._shaped(torch.stack([x.sum(1) for x in parts]).sum(0).abs() / size)

    @cached_property
    def primal_residual(self) -> Tensor:
        """The largest violation of a constraint, relative to its own terms or 1."""
        program, z = self.program, self.found.z
        over = (program.A.times(z) - program.b).clamp(min=0)
        off = (program.E.times(z) - program.h).abs()
        over = over / (program.A.size().times(z.abs()) + program.b.abs()).clamp(min=1)
        off = off / (program.E.size().times(z.abs()) + program.h.abs()).clamp(min=1)
        below = (-z).clamp(min=0) if program.nonnegative else torch.zeros_like(z)
        return self._shaped(torch.cat([over, off, below], 1).amax(1))

    @cached_property
    def dual_residual(self) -> Tensor:
        """The largest entry of ``c + A'v + E'w - s``, relative to its own terms or 1."""
        program, found = self.program, self.found
        rest = program.c + program.A.adjoint(found.v) + program.E.adjoint(found.w) - found.s
        size = program.c.abs() + program.A.size().adjoint(found.v) + found.s
        size = size + program.E.size().adjoint(found.w.abs())
        return self._shaped((rest.abs() / size.clamp(min=1)).amax(1))

    @cached_property
    def unique(self) -> Tensor:
        """Where no other point has the same cost; false where there is no solution.

        If false, the gradient is that of one choice.
        """
        only = self._regular & self.found.optimal
        for i in (self.found.optimal & ~only).nonzero()[:, 0].tolist():
            only[i] = not _has_another(self.program, self._active, i)
        return self._shaped(only)

    @cached_property
    def degenerate(self) -> Tensor:
        """Where tight rows are not as many as variables, or the multiplier of one is zero.

        There the solution has no derivative, only one-sided ones: it leaves along different rows
        in different directions.
        """
        near = self._active
        same = (near.tight == near.support).all(1)
        same &= (near.tight_bounds == near.support_bounds).all(1)
        return self._shaped(~(same & self._regular) & self.found.optimal)

    @cached_property
    def _regular(self) -> Tensor:
        """Where the rows with a multiplier alone determine the solution, ``[batch]``."""
        near = self._active
        square = is_square(self.program, near.support, near.support_bounds)
        if square.any():
            rows, bounds = near.support[square], near.support_bounds[square]
            scaled, _ = equilibrate(self.program.pick(square))
            square[square.clone()] = Vertices(scaled, rows, bounds).regular
        return square

    def _shaped(self, x: Tensor) -> Tensor:
        return x.reshape((*self.program.batch, *x.shape[1:]))


def _has_another(program: ProgramBatch, near: ActiveSet, i: int) -> bool:
    """Whether one can leave solution ``i`` without violating a constraint or changing the cost.

    Rows with a multiplier must stay tight, other tight rows may open. If such directions exist at
    all, a random linear function is not zero on them: maximise it, then its opposite.
    """
    one = program.member(i)
    rows, bounds, support, support_bounds = (
        x[i].cpu().numpy()
        for x in (near.tight, near.tight_bounds, near.support, near.support_bounds)
    )
    stay = vstack([csr_array(one.A[support]), csr_array(one.E)])
    may = csr_array(one.A[rows & ~support])
    box = np.stack([np.where(bounds, 0.0, -1.0), np.where(support_bounds, 0.0, 1.0)], 1)
    cost = np.random.default_rng(0).normal(size=len(one.c))
    for sign in (1, -1):
        zeros = np.zeros(may.shape[0]), np.zeros(stay.shape[0])
        answer = run_highs(-sign * cost, may, zeros[0], stay, zeros[1], bounds=box)
        if answer.status == 0 and -answer.fun > LEAST_DISTANCE:
            return True
    return False
