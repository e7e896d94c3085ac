"""What is known about a solution besides its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from setpoint.layers.linear_program import quality
from setpoint.layers.linear_program.active import Active, active
from setpoint.layers.linear_program.program import Program, Solution


@dataclass(frozen=True)
class ProgramInfo:
    """Status, multipliers and quality of each solution, in the batch's own shape, detached.

    Everything beyond status and multipliers is computed when it is first asked for.

    Attributes:
        program: The programs as they were solved (float64, one batch dimension).
        found: The solver's answer for them.
        rays: For each member without a solution its proof (see ``ProgramError``), else ``()``.
    """

    program: Program
    found: Solution
    rays: tuple[tuple[Tensor, ...], ...]

    @property
    def status(self) -> tuple[str, ...]:
        """``optimal``, ``infeasible``, ``unbounded`` or ``unsolved`` for each member, in order."""
        return self.found.status

    @property
    def solver(self) -> tuple[str, ...]:
        """Which solver found each member's solution."""
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
    def _active(self) -> Active:
        return active(self.program, self.found)

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
        """Primal minus dual value, relative: with no residuals, 0 proves optimality."""
        return self._shaped(quality.gap(self.program, self.found))

    @cached_property
    def primal_residual(self) -> Tensor:
        """The largest violation of a constraint, relative."""
        return self._shaped(quality.primal_residual(self.program, self.found))

    @cached_property
    def dual_residual(self) -> Tensor:
        """The largest entry of ``c + A'v + E'w - s``, relative."""
        return self._shaped(quality.dual_residual(self.program, self.found))

    @cached_property
    def unique(self) -> Tensor:
        """Where no other point has the same cost. If false, the gradient is that of one choice."""
        return self._shaped(quality.unique(self.program, self.found, self._active))

    @cached_property
    def degenerate(self) -> Tensor:
        """Where more (or other) rows are tight than needed: there is no derivative, only sides."""
        return self._shaped(quality.degenerate(self.program, self.found, self._active))

    def _shaped(self, x: Tensor) -> Tensor:
        return x.reshape((*self.program.batch, *x.shape[1:]))
