"""Which solver for which programs, and what happens to members it cannot solve."""

from __future__ import annotations

from dataclasses import replace

import torch

from setpoint.layers.linear_program.highs import solve_by_highs
from setpoint.layers.linear_program.newton import solve_by_newton
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.separable import separate
from setpoint.layers.linear_program.sketch import Sketch

SOLVERS = ("auto", "highs", "newton")


MEMBERS = 16  # the batch from which Newton is faster: benchmarks/programs/solver_choice.py
VARIABLES = 200  # its matrix has this many rows and columns for each member


def choose(program: Program) -> str:
    """Newton for batches of dense programs and off the CPU, where HiGHS is not; else HiGHS."""
    if program.is_sparse:
        return "highs"
    if program.c.device.type != "cpu":
        return "newton"
    many, narrow = program.members >= MEMBERS, program.c.shape[1] <= VARIABLES
    return "newton" if many and narrow else "highs"


def solve(program: Program, solver: str, sketch: Sketch | None = None) -> Solution:
    """Solve every member; what Newton leaves unsolved, HiGHS gets the last word on."""
    if solver not in SOLVERS:
        known = ", ".join(repr(name) for name in SOLVERS)
        raise ValueError(f"solver must be one of {known}; got {solver!r}.")
    if sketch is not None and (solver == "highs" or program.is_sparse):
        raise ValueError('sketch goes with dense matrices and solver="newton".')
    if solver == "auto" and sketch is None:
        parts = separate(program) if program.is_sparse else None
        if parts is not None and parts.rest is None:
            return parts.alone
        if parts is not None and parts.rest is not None:
            return parts.join(_solve(parts.rest, choose(parts.rest), None))
        solver = choose(program)
    return _solve(program, solver, sketch)


def _solve(program: Program, solver: str, sketch: Sketch | None) -> Solution:
    if solver == "highs":
        return solve_by_highs(program)
    found = solve_by_newton(program, sketch)
    return _finish(program, found)


def _finish(program: Program, found: Solution) -> Solution:
    rest = torch.tensor([i for i, word in enumerate(found.status) if word != "optimal"])
    if not len(rest):
        return found
    rest = rest.to(program.c.device)
    other = solve_by_highs(program.pick(rest))
    status, solver = list(found.status), list(found.solver)
    for k, i in enumerate(rest.tolist()):
        status[i], solver[i] = other.status[k], other.solver[k]
    parts = {}
    for name in ("z", "v", "w", "s"):
        part = getattr(found, name).clone()
        part[rest] = getattr(other, name)
        parts[name] = part
    return replace(found, status=tuple(status), solver=tuple(solver), **parts)
