"""Any linear program inside any network: ``z, info = linear_program(c, A, b)``.

A sparse program none of whose rows holds two variables (one variable per pair of examples, say) is
solved in closed form: each variable goes to its nearest bound. A solver would spend its time and
memory on finding that out. Other programs go to HiGHS or to Newton's method.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.programs.diagnostics import ProgramInfo
from setpoint.programs.gradients import CostGradient, optimal_solution, optimal_value
from setpoint.programs.highs import solve_by_highs
from setpoint.programs.infeasibility import prove_failures
from setpoint.programs.newton import Sketch, solve_by_newton
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch, check_program
from setpoint.programs.unrolled import Unrolled

SOLVERS = ("auto", "highs", "newton")
NEWTON_MEMBERS = 16  # Newton is faster for this many programs at least, and
NEWTON_VARIABLES = 200  # for this many variables at most: benchmarks/programs/solver_choice.py


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


def fastest_solver(program: ProgramBatch) -> str:
    """Newton for batches of dense programs and for devices HiGHS cannot use; else HiGHS."""
    if program.is_sparse:
        return "highs"
    if program.c.device.type != "cpu":
        return "newton"
    many, narrow = program.members >= NEWTON_MEMBERS, program.c.shape[1] <= NEWTON_VARIABLES
    return "newton" if many and narrow else "highs"


def solve_programs(
    program: ProgramBatch, solver: str, sketch: Sketch | None = None
) -> SolutionBatch:
    """Solve every member; what Newton leaves unsolved goes to HiGHS.

    Raises a ValueError for an unknown solver, or a sketch without dense Newton.
    """
    if solver not in SOLVERS:
        known = ", ".join(repr(name) for name in SOLVERS)
        raise ValueError(f"solver must be one of {known}; got {solver!r}.")
    if sketch is not None and (solver == "highs" or program.is_sparse):
        raise ValueError('sketch goes with dense matrices and solver="newton".')
    if solver == "auto":
        found = solve_separable(program) if sketch is None else None
        if found is not None:
            return found
        solver = fastest_solver(program) if sketch is None else "newton"
    if solver == "highs":
        return solve_by_highs(program)
    found = solve_by_newton(program, sketch)
    rest = (~found.optimal).nonzero()[:, 0]
    if not len(rest):
        return found
    other = solve_by_highs(program.pick(rest))
    found.put(rest, other)
    status, names = list(found.status), list(found.solver)
    for k, i in enumerate(rest.tolist()):
        status[i], names[i] = other.status[k], other.solver[k]
    return replace(found, status=tuple(status), solver=tuple(names))


def solve_separable(program: ProgramBatch) -> SolutionBatch | None:
    """The closed form of sparse programs without a row that holds two variables.

    ``None`` for other programs, and where a member has no solution: a solver proves that.
    """
    A, c = program.A, program.c
    if A.pattern is None or program.E.shape[0] or not (A.values != 0).all():
        return None
    row, places = A.pattern
    entries = torch.bincount(row, minlength=A.shape[0])
    if (entries > 1).any() or (program.b[:, entries == 0] < 0).any():
        return None
    column = places.expand(len(c), -1)
    sign = torch.where(c < 0, -1.0, 1.0)  # mirrored, every cost pulls towards the lower bound
    at = program.b[:, row] / A.values * sign.gather(1, column)
    is_lower = A.values * sign.gather(1, column) < 0
    start, end = torch.full_like(c, -torch.inf), torch.full_like(c, torch.inf)
    if program.nonnegative:
        start, end = torch.where(sign > 0, 0, start), torch.where(sign < 0, 0, end)
    low = start.scatter_reduce(1, column, torch.where(is_lower, at, -torch.inf), "amax")
    high = end.scatter_reduce(1, column, torch.where(is_lower, torch.inf, at), "amin")
    z = torch.where(c == 0, torch.clamp(torch.zeros_like(c), low, high), low)
    if not (torch.isfinite(z) & (low <= high)).all():
        return None
    by_row = is_lower & (at == low.gather(1, column)) & (start != low).gather(1, column)
    first = _first_in_column(by_row, column, c.shape[1])  # of equal bounds one has the multiplier
    v = torch.zeros_like(program.b)
    v[:, row] = torch.where(first, c.gather(1, column).abs() / A.values.abs(), 0)
    has_row = torch.zeros_like(c).scatter_add(1, column, first.to(c.dtype)) > 0
    s = torch.where(has_row, 0, c.clamp(min=0))
    words, names = ("optimal",) * len(c), ("closed form",) * len(c)
    return SolutionBatch(z * sign, v, torch.zeros_like(program.h), s, words, names, (0,) * len(c))


def _first_in_column(marked: Tensor, column: Tensor, width: int) -> Tensor:
    """Of the marked entries, the first of each column."""
    place = torch.arange(marked.shape[1], device=marked.device).expand_as(marked)
    late = torch.where(marked, place, marked.shape[1])
    least = late.new_full((len(marked), width), marked.shape[1])
    least = least.scatter_reduce(1, column, late, "amin")
    return marked & (late == least.gather(1, column))
