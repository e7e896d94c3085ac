"""Which solver solves which programs.

Variables that share no row with another are solved in closed form: each goes to its nearest bound.
Some large programs consist of nothing else (one variable per pair of examples, say), and a solver
would spend its time and memory on finding that out. The rest goes to HiGHS or to Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint.programs.highs import solve_by_highs
from setpoint.programs.newton import solve_by_newton
from setpoint.programs.penalty import Sketch
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
    if solver == "auto" and sketch is None:
        parts = separate(program)
        if parts is not None:
            if parts.rest is None:
                return parts.alone
            return parts.join(_solve_with(parts.rest, fastest_solver(parts.rest)))
        solver = fastest_solver(program)
    return _solve_with(program, solver, sketch)


def _solve_with(program: ProgramBatch, solver: str, sketch: Sketch | None = None) -> SolutionBatch:
    if solver == "highs":
        return solve_by_highs(program)
    found = solve_by_newton(program, sketch)
    rest = torch.tensor([i for i, word in enumerate(found.status) if word != "optimal"])
    if not len(rest):
        return found
    rest = rest.to(program.c.device)
    return found.put(rest, solve_by_highs(program.pick(rest)))


@dataclass(frozen=True)
class Separated:
    """A sparse program in two parts.

    Attributes:
        columns: Variables that share no row with another, ``[n]``.
        rows: Inequalities that bound one of these, ``[m]``.
        alone: Their solutions; zeros elsewhere.
        rest: The program of the other variables and rows, if there are any.
    """

    columns: Tensor
    rows: Tensor
    alone: SolutionBatch
    rest: ProgramBatch | None

    def join(self, other: SolutionBatch) -> SolutionBatch:
        """The whole solution, when the rest is solved."""
        solved = other.optimal[:, None]
        z, v, s = (x * solved for x in (self.alone.z, self.alone.v, self.alone.s))
        z[:, ~self.columns], s[:, ~self.columns] = other.z, other.s
        v[:, ~self.rows] = other.v
        return replace(other, z=z, v=v, s=s)


def separate(program: ProgramBatch) -> Separated | None:
    """The two parts of a sparse program.

    ``None`` if every variable shares a row with another, or one that does not has no solution.
    """
    A, E = program.A, program.E
    if A.row is None or A.column is None or (E.shape[0] and not E.is_sparse):
        return None
    m, n = A.shape
    per_row = torch.bincount(A.row, minlength=m)
    single = (per_row[A.row] == 1) & (A.values != 0).all(0)
    columns = torch.ones(n, dtype=torch.bool, device=A.row.device)
    columns[A.column[~single]] = False
    if E.column is not None:
        columns[E.column] = False
    if not columns.any():
        return None
    entries = columns[A.column]
    rows = torch.zeros(m, dtype=torch.bool, device=A.row.device)
    rows[A.row[entries]] = True
    alone = _solve_alone(program, A.row, A.column, columns, entries)
    if alone is None:
        return None
    if columns.all():  # the remaining rows say 0 <= b and 0 = h
        holds = (program.b[:, ~rows] >= 0).all() and not program.h.any()
        return Separated(columns, rows, alone, None) if holds else None
    every = torch.ones(E.shape[0], dtype=torch.bool, device=columns.device)
    rest = replace(
        program,
        c=program.c[:, ~columns],
        A=A.part(~rows, ~columns),
        b=program.b[:, ~rows],
        E=E.part(every, ~columns),
    )
    return Separated(columns, rows, alone, rest)


def _solve_alone(
    program: ProgramBatch, row: Tensor, column: Tensor, columns: Tensor, entries: Tensor
) -> SolutionBatch | None:
    """The solutions of the marked columns; ``None`` if one of them has none."""
    c, a = program.c, program.A.values[:, entries]
    row, column = row[entries], column[entries].expand(len(c), -1)
    at = program.b[:, row] / a
    sign = torch.where(
        c < 0, -1.0, 1.0
    )  # mirrored, every variable with a cost goes to its lower bound
    toward, against = (a * sign.gather(1, column) < 0), (a * sign.gather(1, column) > 0)
    at = at * sign.gather(1, column)
    start = torch.full_like(c, -torch.inf)
    end = torch.full_like(c, torch.inf)
    if program.nonnegative:
        start, end = torch.where(sign > 0, 0, start), torch.where(sign < 0, 0, end)
    low = start.scatter_reduce(1, column, torch.where(toward, at, -torch.inf), "amax")
    high = end.scatter_reduce(1, column, torch.where(against, at, torch.inf), "amin")
    z = torch.where(c == 0, torch.clamp(torch.zeros_like(c), low, high), low)
    if not (torch.isfinite(z) & (low <= high))[:, columns].all():
        return None  # infeasible or unbounded: let a solver say so
    z = torch.where(columns, z * sign, 0)
    v = torch.zeros_like(program.b)
    binding = toward & (at == low.gather(1, column)) & ~(start == low).gather(1, column)
    first = _first_in_column(binding, column, c.shape[1])
    price = torch.where(first, c.gather(1, column).abs() / a.abs(), 0)
    v[:, row] = price
    paid = torch.zeros_like(c).scatter_add(1, column, first.to(c.dtype))
    s = torch.where(columns & (paid == 0), c.clamp(min=0), 0)
    words, names = ("optimal",) * len(c), ("closed form",) * len(c)
    return SolutionBatch(z, v, torch.zeros_like(program.h), s, words, names, (0,) * len(c))


def _first_in_column(marked: Tensor, column: Tensor, width: int) -> Tensor:
    """Of the marked entries, the first of each column."""
    place = torch.arange(marked.shape[1], device=marked.device).expand_as(marked)
    late = torch.where(marked, place, marked.shape[1])
    least = late.new_full((len(marked), width), marked.shape[1])
    least = least.scatter_reduce(1, column, late, "amin")
    return marked & (late == least.gather(1, column))
