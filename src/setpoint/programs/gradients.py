"""Gradients of solutions (through the active rows) and of optimal values (through the duals)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setpoint._checks import positive, whole
from setpoint.programs.active_set import Active, active, follow, least_squares
from setpoint.programs.infeasibility import ProgramError
from setpoint.programs.newton import FIRST, GROWTH, LAST, ROUNDS, new_multipliers, origin
from setpoint.programs.penalty import ProximalTerm, minimise
from setpoint.programs.scaling import equilibrate
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch


@dataclass(frozen=True)
class Solved:
    """Programs with their solutions: what a backward pass needs besides the parameters."""

    program: ProgramBatch
    found: SolutionBatch
    by_cost: CostGradient | None = None


class _Vertex(torch.autograd.Function):
    """The solution, moved by its active constraints; its true gradient by the costs is zero."""

    @staticmethod
    def forward(
        ctx: Any, c: Tensor, A: Tensor, b: Tensor, E: Tensor, h: Tensor, of: Solved
    ) -> Tensor:
        ctx.save_for_backward(c, A, b, E, h)
        ctx.of = of
        return of.found.z.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        program, found = _unchanged(ctx)
        need, gradient = ctx.needs_input_grad, gradient * found.optimal[:, None]
        by_c = torch.zeros_like(program.c) if need[0] else None
        if need[0] and ctx.of.by_cost is not None:
            by_c = ctx.of.by_cost(program, found, gradient)
        if not any(need[1:5]):
            return by_c, None, None, None, None, None
        by_b, by_h = follow(program, active(program, found), gradient)
        by_A = -program.A.outer(by_b, found.z) if need[1] else None
        by_E = -program.E.outer(by_h, found.z) if need[3] else None
        return by_c, by_A, by_b, by_E, by_h, None


class _Value(torch.autograd.Function):
    """The optimal value; by Danskin's theorem the multipliers are its gradient: no solve at all."""

    @staticmethod
    def forward(
        ctx: Any, c: Tensor, A: Tensor, b: Tensor, E: Tensor, h: Tensor, of: Solved
    ) -> Tensor:
        ctx.save_for_backward(c, A, b, E, h)
        ctx.of = of
        return (of.program.c * of.found.z).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        program, found = _unchanged(ctx)
        need, g = ctx.needs_input_grad, gradient[:, None]
        by_A = program.A.outer(g * found.v, found.z) if need[1] else None
        by_E = program.E.outer(g * found.w, found.z) if need[3] else None
        return g * found.z, by_A, -g * found.v, by_E, -g * found.w, None


def _unchanged(ctx: Any) -> tuple[ProgramBatch, SolutionBatch]:
    """What was solved; autograd raises here if a part was since changed in place."""
    _ = ctx.saved_tensors
    return ctx.of.program, ctx.of.found


def solution(
    program: ProgramBatch, found: SolutionBatch, by_cost: CostGradient | None = None
) -> Tensor:
    """The solutions ``[batch, n]``, differentiable in ``A``, ``b``, ``E`` and ``h``.

    By ``c`` the gradient is zero, the true one, unless a surrogate is named.
    """
    return _apply(_Vertex, program, Solved(program.detach(), found, by_cost))


def value(program: ProgramBatch, found: SolutionBatch) -> Tensor:
    """The optimal values ``[batch]``, differentiable in every part of the program."""
    return _apply(_Value, program, Solved(program.detach(), found))


def _apply(function: type[torch.autograd.Function], program: ProgramBatch, of: Solved) -> Tensor:
    parts = (program.c, program.A.values, program.b, program.E.values, program.h)
    out: Tensor = function.apply(*parts, of)  # type: ignore[no-untyped-call]
    return out


# ------------------------------------------------------------------------------------------------
# Stand-ins for the gradient of a solution by its costs, which in truth is zero or not defined.
#
# A vertex stays where it is while the costs move a little, then jumps. Training the costs needs
# the slope of something smoother, and there are three well known ones; which one is a choice, so
# it is the caller's:


Name = Literal["blackbox", "perturbed", "smoothed"]
Solver = Callable[[ProgramBatch], SolutionBatch]


@dataclass(frozen=True)
class CostGradient:
    """A stand-in by name, with its one number.

    Attributes:
        name: One of the three.
        strength: How far the costs are moved (blackbox: times the incoming gradient; perturbed: the
            noise's deviation), or the weight of the added square (smoothed).
        samples: How many noisy programs, for ``perturbed``.
        generator: Where the noise comes from.
        solver: Solves programs with other costs.
    """

    name: Name
    strength: float
    samples: int
    generator: torch.Generator | None
    solver: Solver

    def __post_init__(self) -> None:
        if self.name not in _WAYS:
            known = ", ".join(repr(name) for name in _WAYS)
            raise ValueError(f"cost_gradient must be one of {known}, or None; got {self.name!r}.")
        positive(self.strength, "strength")
        whole(self.samples, "samples", least=1)

    def __call__(self, program: ProgramBatch, found: SolutionBatch, gradient: Tensor) -> Tensor:
        """The gradient by the costs for a gradient by the solutions, ``[batch, n]``."""
        return _WAYS[self.name](self, program, found, gradient) * found.optimal[:, None]

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


def _blackbox(way: CostGradient, program: ProgramBatch, found: SolutionBatch, g: Tensor) -> Tensor:
    moved = way.solve(program, program.c + way.strength * g, found.optimal)
    return (moved - found.z) / way.strength


def _perturbed(way: CostGradient, program: ProgramBatch, found: SolutionBatch, g: Tensor) -> Tensor:
    members, n = program.c.shape
    shape = ((way.samples + 1) // 2, members, n)
    half = torch.randn(shape, generator=way.generator, dtype=g.dtype, device=g.device)
    noise = torch.cat([half, -half])
    every = torch.arange(members, device=g.device).repeat(len(noise))
    costs = (program.c + way.strength * noise).reshape(-1, n)
    z = way.solve(program.pick(every), costs, found.optimal[every]).reshape(noise.shape)
    change = ((z - found.z) * g).sum(-1, keepdim=True)
    return (change * noise).mean(0) / way.strength


def _smoothed(way: CostGradient, program: ProgramBatch, found: SolutionBatch, g: Tensor) -> Tensor:
    return -free_part(program, way.strength, g, found.optimal) / way.strength


_WAYS = {"blackbox": _blackbox, "perturbed": _perturbed, "smoothed": _smoothed}


# ------------------------------------------------------------------------------------------------
# Programs with a square added, ``c'z + weight/2 |z|^2``, and what their constraints leave free.
#
# The penalty method does not mind the square: it is an anchor at zero instead of at the last
# point.


def solve_quadratic(program: ProgramBatch, square: float) -> SolutionBatch:
    """The solutions with ``square/2 |z|^2`` added: unique, and continuous in the costs."""
    scaled, scales = equilibrate(program)
    weights = square * scales.cost * scales.columns**2 / scales.right
    anchor = ProximalTerm(weights, torch.zeros_like(program.c))
    at, answer = origin(scaled), origin(scaled)
    live = torch.arange(program.members, device=program.c.device)
    solved = torch.zeros(program.members, dtype=torch.bool, device=program.c.device)
    part, weight = scaled, FIRST
    for _ in range(ROUNDS):
        at, _ = minimise(part, at, weight, anchor)
        at, settled = new_multipliers(part, at, weight, anchor.slope(at.y))
        answer.put(live[settled], at.pick(settled))
        solved[live[settled]] = True
        going = ~settled
        live, part, at, anchor = live[going], part.pick(going), at.pick(going), anchor.pick(going)
        if not len(live):
            break
        weight = min(weight * GROWTH, LAST)
    status = tuple("optimal" if yes else "unsolved" for yes in solved.tolist())
    none = (0,) * len(status)
    names = ("newton",) * len(status)
    return scales.back(SolutionBatch(answer.y, answer.v, answer.w, answer.s, status, names, none))


def free_part(program: ProgramBatch, square: float, g: Tensor, among: Tensor) -> Tensor:
    """The part of ``g`` along which the smoothed solutions can move, ``[batch, n]``."""
    found = solve_quadratic(program, square)
    if (among & ~found.optimal).any():
        raise ProgramError(
            "The smoothed program was not solved. Bring rows and columns to similar scales, or "
            f"change the strength, which is {square:g}."
        )
    pull = program.with_cost(program.c + square * found.z)  # a linear program with this solution
    near = active(pull, found)
    held = Active(near.support, near.support_bounds, near.support, near.support_bounds)
    out = torch.zeros_like(g)
    for i in among.nonzero()[:, 0].tolist():
        u, w = least_squares(program, held, i, g[i])
        part = program.pick(torch.tensor([i], device=g.device))
        carried = part.A.adjoint(u[None]) + part.E.adjoint(w[None])
        out[i] = (g[i] - carried[0]) * ~held.tight_bounds[i]
    return out
