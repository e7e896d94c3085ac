"""Any linear program inside any network: ``z, info = linear_program(c, A, b)``."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.programs.diagnostics import ProgramInfo
from setpoint.programs.gradients import CostGradient, optimal_solution, optimal_value
from setpoint.programs.infeasibility import prove_failures
from setpoint.programs.newton import Sketch
from setpoint.programs.solving import solve_programs
from setpoint.programs.standard_form import check_program
from setpoint.programs.unrolled import Unrolled


def linear_program(
    c: Any,
    A: Any = None,
    b: Any = None,
    E: Any = None,
    h: Any = None,
    nonnegative: bool = False,
    *,
    solver: Literal["auto", "highs", "newton"] = "auto",
    value_only: bool = False,
    cost_gradient: Literal["blackbox", "perturbed", "smoothed"] | None = None,
    strength: float = 1.0,
    samples: int = 16,
    sketch: int | Literal["auto"] | None = None,
    unroll: bool | Unrolled = False,
    strict: bool = True,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, ProgramInfo]:
    """Solve ``min c'z`` with ``A z <= b``, ``E z = h`` and, if wanted, ``z >= 0``.

    Args:
        c: Costs, ``[..., n]``.
        A: Rows of the inequalities, ``[..., m, n]``, dense or sparse (COO or CSR), or ``None``.
        b: Their right sides, ``[..., m]``.
        E: Rows of the equalities, ``[..., p, n]``, dense or sparse, or ``None``.
        h: Their right sides, ``[..., p]``.
        nonnegative: Whether ``z >= 0`` holds too.
        solver: ``"highs"``, ``"newton"``, or ``"auto"``: the one that a benchmark found faster.
        value_only: Return the optimal value instead of the solution. Its gradient, in all parts,
            is read off the multipliers (Danskin's theorem): nothing is solved backwards.
        cost_gradient: What replaces the gradient of a solution by ``c``, see below.
        strength: Its one number: the step of ``"blackbox"``, the deviation of ``"perturbed"``, the
            weight of ``"smoothed"``.
        samples: How many programs ``"perturbed"`` solves for one gradient.
        sketch: Form Newton's matrix from this many sampled rows (``solver="newton"``); ``"auto"``:
            from as many as the rows' effective dimension asks for.
        unroll: The published method instead, unrolled, for comparison: dense, and inexact. True,
            or its settings (:class:`setpoint.programs.Unrolled`).
        strict: Raise if a member has no solution. If false, such a member gives zeros without a
            gradient, and ``info.status`` says why.
        generator: The source of random numbers (``"perturbed"``, ``sketch``).

    Returns:
        The solutions ``[..., n]``, or with ``value_only`` the values ``[...]``, and what is known
        about them. Computed in float64, returned in the dtype of the parts; leading shapes are
        broadcast.

    Raises:
        InfeasibleProgram: No ``z`` obeys all constraints; the error carries a Farkas ray.
        UnboundedProgram: The cost has no lower bound; the error carries a direction of descent.

    The gradient of a solution by ``A``, ``b``, ``E`` and ``h`` goes through the constraints that
    are active; it is the true one where ``info.unique`` and not ``info.degenerate``. By ``c`` it is
    zero: a vertex does not move with the costs until it jumps. To train costs, name a surrogate:
    ``"blackbox"`` (one more program), ``"perturbed"`` (``samples`` more) or ``"smoothed"`` (one
    quadratic program more). All gradients are first derivatives: differentiating a gradient again
    raises a RuntimeError (``unroll`` apart, whose steps are ordinary operations).

    Examples:
        >>> capacity = torch.tensor([4.0, 3.0], requires_grad=True)       # hours of two machines
        >>> hours = torch.tensor([[1.0, 1.0], [1.0, 0.5]])
        >>> z, info = linear_program(-torch.tensor([3.0, 2.0]), hours, capacity, nonnegative=True)
        >>> z.tolist(), info.duals.tolist()
        ([2.0, 2.0], [1.0, 2.0])
        >>> z[0].backward()
        >>> capacity.grad.tolist()
        [-1.0, 2.0]
    """
    program, dtype = check_program(c, A, b, E, h, nonnegative)
    still = program.detach()
    rows = None if sketch is None else Sketch.of(still, sketch, generator)
    by_cost = None
    if cost_gradient is not None:
        if value_only:
            raise ValueError(
                "cost_gradient goes with solutions: the value of a program has a true gradient by "
                "its costs. Leave out cost_gradient or value_only."
            )
        again = partial(solve_programs, solver=solver)
        by_cost = CostGradient(cost_gradient, strength, samples, generator, again)
    rays: tuple[tuple[Tensor, ...], ...] = ((),) * program.members
    if unroll:
        if by_cost is not None or program.is_sparse:
            raise ValueError("unroll=True goes with dense matrices and without cost_gradient.")
        settings = unroll if isinstance(unroll, Unrolled) else Unrolled()
        result, found = settings.solve(program, rows)
        result = (program.c * result).sum(1) if value_only else result
    else:
        with torch.no_grad():
            found = solve_programs(still, solver, rows)
            found, rays = prove_failures(still, found, strict=strict)
        if value_only:
            result = optimal_value(program, found)
        else:
            result = optimal_solution(program, found, by_cost)
    shaped = result.reshape((*program.batch, *result.shape[1:])).to(dtype)
    return shaped, ProgramInfo(still, found, rays)
