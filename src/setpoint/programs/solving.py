"""Which solver solves which programs.

A sparse program none of whose rows holds two variables (one variable per pair of examples, say) is
solved in closed form: each variable goes to its nearest bound. A solver would spend its time and
memory on finding that out. Other programs go to HiGHS or to Newton's method.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from setpoint.programs.highs import solve_by_highs
from setpoint.programs.newton import Sketch, solve_by_newton
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch

SOLVERS = ("auto", "highs", "newton")
NEWTON_MEMBERS = 16  # Newton is faster for this many programs at least, and
NEWTON_VARIABLES = 200  # for this many variables at most: benchmarks/programs/solver_choice.py


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
