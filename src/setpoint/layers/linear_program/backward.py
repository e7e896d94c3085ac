"""Gradients of solutions (through the active rows) and of optimal values (through the duals)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setpoint.layers.linear_program.active import active, follow
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.surrogates import Surrogate


@dataclass(frozen=True)
class Solved:
    """Programs with their solutions: what a backward pass needs besides the parameters."""

    program: Program
    found: Solution
    by_cost: Surrogate | None = None


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


def _unchanged(ctx: Any) -> tuple[Program, Solution]:
    """What was solved; autograd raises here if a part was since changed in place."""
    _ = ctx.saved_tensors
    return ctx.of.program, ctx.of.found


def solution(program: Program, found: Solution, by_cost: Surrogate | None = None) -> Tensor:
    """The solutions ``[batch, n]``, differentiable in ``A``, ``b``, ``E`` and ``h``.

    By ``c`` the gradient is zero, the true one, unless a surrogate is named.
    """
    return _apply(_Vertex, program, Solved(program.detach(), found, by_cost))


def value(program: Program, found: Solution) -> Tensor:
    """The optimal values ``[batch]``, differentiable in every part of the program."""
    return _apply(_Value, program, Solved(program.detach(), found))


def _apply(function: type[torch.autograd.Function], program: Program, of: Solved) -> Tensor:
    parts = (program.c, program.A.values, program.b, program.E.values, program.h)
    out: Tensor = function.apply(*parts, of)  # type: ignore[no-untyped-call]
    return out
