"""Gradients of solutions (through the active rows) and of optimal values (through the duals).

The gradient of a solution by its costs is zero or not defined: a vertex stays where it is while the
costs move a little, then jumps. Training the costs needs the slope of something smoother. Three are
known, and which one to use is the caller's choice (:class:`CostGradient`):

* ``blackbox`` (Pogancic et al. 2020): the difference quotient towards costs that were moved along
  the incoming gradient. One more program.
* ``perturbed`` (Berthet et al. 2020): the slope of the mean solution under normal noise on the
  costs, estimated on antithetic samples. As many programs as samples.
* ``smoothed``: the slope of the solution when ``strength/2 |z|^2`` is added to the costs, a
  quadratic program: ``-P / strength`` with ``P`` the projection on the directions that its active
  rows leave free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint._checks import positive, whole
from setpoint.programs.active_set import ActiveSet, active_set_of, follow, least_squares
from setpoint.programs.infeasibility import ProgramError
from setpoint.programs.newton import solve_by_newton
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch


def optimal_solution(
    program: ProgramBatch, found: SolutionBatch, by_cost: CostGradient | None = None
) -> Tensor:
    """The solutions ``[batch, n]``, differentiable in ``A``, ``b``, ``E`` and ``h``.

    By ``c`` the gradient is zero, the true one, unless ``by_cost`` replaces it.
    """
    parts = (program.c, program.A.values, program.b, program.E.values, program.h)
    z: Tensor = _Vertex.apply(*parts, program.detach(), found, by_cost)  # type: ignore[no-untyped-call]
    return z


def optimal_value(program: ProgramBatch, found: SolutionBatch) -> Tensor:
    """The optimal values ``[batch]``, differentiable in every part of the program."""
    parts = (program.c, program.A.values, program.b, program.E.values, program.h)
    value: Tensor = _Value.apply(*parts, program.detach(), found)  # type: ignore[no-untyped-call]
    return value


class _Vertex(torch.autograd.Function):
    """The solution, moved by its active constraints; its true gradient by the costs is zero."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parts, ctx.program, ctx.found, ctx.by_cost = given
        ctx.save_for_backward(*parts)
        z: Tensor = ctx.found.z
        return z.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        program, found, need = ctx.program, ctx.found, ctx.needs_input_grad
        given, gradient = gradient, gradient.detach() * found.optimal[:, None]
        by_c = torch.zeros_like(program.c) if need[0] else None
        if need[0] and ctx.by_cost is not None:
            by_c = ctx.by_cost(program, found, gradient)
        parts: tuple[Tensor | None, ...] = (by_c, None, None, None, None)
        if any(need[1:5]):
            by_b, by_h = follow(program, active_set_of(program, found), gradient)
            by_A = -program.A.outer(by_b, found.z) if need[1] else None
            by_E = -program.E.outer(by_h, found.z) if need[3] else None
            parts = (by_c, by_A, by_b, by_E, by_h)
        return *_once(parts, given, ctx.saved_tensors), None, None, None


class _Value(torch.autograd.Function):
    """The optimal value; by Danskin's theorem the multipliers are its gradient: no solve at all."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parts, ctx.program, ctx.found = given
        ctx.save_for_backward(*parts)
        values: Tensor = (ctx.program.c * ctx.found.z).sum(1)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        program, found, need = ctx.program, ctx.found, ctx.needs_input_grad
        g = gradient.detach()[:, None]
        by_A = program.A.outer(g * found.v, found.z) if need[1] else None
        by_E = program.E.outer(g * found.w, found.z) if need[3] else None
        parts = (g * found.z, by_A, -g * found.v, by_E, -g * found.w)
        return *_once(parts, gradient, ctx.saved_tensors), None, None


def _once(
    gradients: tuple[Tensor | None, ...], given: Tensor, parts: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients, in the graph of all they depend on so that differentiating them raises.

    Reading the saved ``parts`` also lets autograd raise if one was since changed in place.
    """
    if not torch.is_grad_enabled():
        return gradients
    return tuple(None if g is None else _Once.apply(g, given, *parts) for g in gradients)  # type: ignore[no-untyped-call]


class _Once(torch.autograd.Function):
    """The first argument, which depends on the others in a way that is not differentiated."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *depends_on: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise RuntimeError(
            "linear_program has first derivatives only: its gradient cannot be differentiated. "
            "Compute second derivatives by differences, or detach the gradient."
        )


@dataclass(frozen=True)
class CostGradient:
    """A replacement for the gradient of a solution by its costs.

    Attributes:
        name: Which one, see above.
        strength: How far the costs are moved (blackbox: times the incoming gradient; perturbed: the
            noise's deviation), or the weight of the added square (smoothed).
        samples: The number of noisy programs, for ``perturbed``.
        generator: The source of the noise.
        solver: Solves programs with other costs.
    """

    name: Literal["blackbox", "perturbed", "smoothed"]
    strength: float
    samples: int
    generator: torch.Generator | None
    solver: Callable[[ProgramBatch], SolutionBatch]

    def __post_init__(self) -> None:
        if self.name not in _COST_GRADIENTS:
            known = ", ".join(repr(name) for name in _COST_GRADIENTS)
            raise ValueError(f"cost_gradient must be one of {known}, or None; got {self.name!r}.")
        positive(self.strength, "strength")
        whole(self.samples, "samples", least=1)

    def __call__(self, program: ProgramBatch, found: SolutionBatch, gradient: Tensor) -> Tensor:
        """The gradient by the costs for a gradient by the solutions, ``[batch, n]``."""
        return _COST_GRADIENTS[self.name](self, program, found, gradient) * found.optimal[:, None]

    def solve(self, program: ProgramBatch, c: Tensor, among: Tensor) -> Tensor:
        """The solutions with other costs; only members of ``among`` must have one."""
        other = self.solver(program.with_cost(c))
        if (among & ~other.optimal).any():
            raise ProgramError(
                f'cost_gradient="{self.name}" moves the costs, and with these the program has no '
                "solution: it is unbounded. Bound the variables, or lower the strength, which is "
                f"{self.strength:g}."
            )
        return other.z


def _blackbox(
    by_cost: CostGradient, program: ProgramBatch, found: SolutionBatch, g: Tensor
) -> Tensor:
    moved = by_cost.solve(program, program.c + by_cost.strength * g, found.optimal)
    return (moved - found.z) / by_cost.strength


def _perturbed(
    by_cost: CostGradient, program: ProgramBatch, found: SolutionBatch, g: Tensor
) -> Tensor:
    members, n = program.c.shape
    shape = ((by_cost.samples + 1) // 2, members, n)
    half = torch.randn(shape, generator=by_cost.generator, dtype=g.dtype, device=g.device)
    noise = torch.cat([half, -half])
    every = torch.arange(members, device=g.device).repeat(len(noise))
    costs = (program.c + by_cost.strength * noise).reshape(-1, n)
    z = by_cost.solve(program.pick(every), costs, found.optimal[every]).reshape(noise.shape)
    change = ((z - found.z) * g).sum(-1, keepdim=True)
    return (change * noise).mean(0) / by_cost.strength


def _smoothed(
    by_cost: CostGradient, program: ProgramBatch, found: SolutionBatch, g: Tensor
) -> Tensor:
    square = by_cost.strength
    smooth = solve_by_newton(program, square=square)
    if (found.optimal & ~smooth.optimal).any():
        raise ProgramError(
            "The smoothed program was not solved. Bring rows and columns to similar scales, or "
            f"change the strength, which is {square:g}."
        )
    tangent = program.with_cost(program.c + square * smooth.z)  # has the same solution
    near = active_set_of(tangent, smooth)
    held = ActiveSet(near.support, near.support_bounds, near.support, near.support_bounds)
    out = torch.zeros_like(g)
    for i in found.optimal.nonzero()[:, 0].tolist():
        u, w = least_squares(program, held, i, g[i])
        part = program.pick(torch.tensor([i], device=g.device))
        carried = part.A.adjoint(u[None]) + part.E.adjoint(w[None])
        out[i] = (g[i] - carried[0]) * ~held.tight_bounds[i]
    return -out / square


_COST_GRADIENTS = {"blackbox": _blackbox, "perturbed": _perturbed, "smoothed": _smoothed}
