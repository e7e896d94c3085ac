"""The last word on members that a solver did not solve: a proof, an error, or a status."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from setpoint.layers.linear_program.errors import InfeasibleProgram, ProgramError, UnboundedProgram
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.rays import farkas, recession

NEARLY = 1e-9  # of its own terms, a sum below this is zero
Ray = tuple[Tensor, ...]
Rays = tuple[Ray, ...]


def settle(program: Program, found: Solution, *, strict: bool) -> tuple[Solution, Rays]:
    """Prove each failure; if ``strict``, raise the first one and name the others."""
    bad = [i for i, word in enumerate(found.status) if word != "optimal"]
    status = list(found.status)
    rays: list[Ray] = [()] * program.members
    for i in bad:
        status[i], rays[i] = prove(program, i)
        if strict:
            raise _error(program, bad, status[i], rays[i])
    return replace(found, status=tuple(status)), tuple(rays)


def prove(program: Program, i: int) -> tuple[str, Ray]:
    """Why a member has no solution, with its ray: infeasible first, then unbounded."""
    one = program.member(i)
    contradiction = farkas(one)
    if contradiction is not None:
        return "infeasible", tuple(torch.from_numpy(x).to(program.c) for x in contradiction)
    direction = recession(one)
    if direction is not None:
        return "unbounded", (torch.from_numpy(direction).to(program.c),)
    return "unsolved", ()


def _error(program: Program, bad: list[int], status: str, ray: Ray) -> ProgramError:
    places = [tuple(int(k) for k in np.unravel_index(i, program.batch)) for i in bad]
    place = places[0] if program.batch else ()
    where = f" (member {list(place)} of the batch)" if place else ""
    if len(bad) > 1:
        others = ", ".join(str(list(p)) for p in places[1:6]) + ("" if len(bad) <= 6 else ", ...")
        where = f" (member {list(place)} of the batch; {len(bad)} members fail, also {others})"
    if status == "infeasible":
        return InfeasibleProgram(
            f"The linear program{where} is infeasible: {_contradiction(program, bad[0], ray)} "
            "Loosen one of them, or pass strict=False and look at info.status.",
            place,
            ray,
        )
    if status == "unbounded":
        return UnboundedProgram(
            f"The linear program{where} is unbounded: its cost falls for ever along "
            f"{_largest(ray[0], 'z')}. Bound these variables, for example by nonnegative=True, "
            "or change the sign of c.",
            place,
            ray,
        )
    return ProgramError(
        f"The linear program{where} was not solved, and is neither proven infeasible nor "
        "unbounded. Bring its rows and columns to similar scales.",
        place,
    )


def _contradiction(program: Program, i: int, ray: Ray) -> str:
    parts = [_largest(x, name) for x, name in zip(ray, "AE", strict=True) if x.any()]
    if _needs_bounds(program, i, ray):
        parts.append("z >= 0")
    if sum(int(x.count_nonzero()) for x in ray) == len(parts) == 1:
        return f"row {parts[0]} has no entries, and its right side does not hold."
    return f"rows {' and '.join(parts)} contradict each other (their weights are in error.ray)."


def _needs_bounds(program: Program, i: int, ray: Ray) -> bool:
    """Whether the rows add up to a contradiction only because no variable is negative."""
    if not program.nonnegative:
        return False
    one, (v, w) = program.member(i), (x.cpu().numpy() for x in ray)
    total, size = one.A.T @ v + one.E.T @ w, abs(one.A).T @ v + abs(one.E).T @ abs(w)
    return bool((total > NEARLY * size.max()).any())


def _largest(x: Tensor, name: str, most: int = 5) -> str:
    """``A[3], A[7] and 2 more``: the heaviest entries of a ray."""
    heavy = [int(k) for k in x.abs().argsort(descending=True) if x[k] != 0]
    shown = ", ".join(f"{name}[{k}]" for k in sorted(heavy[:most]))
    return shown if len(heavy) <= most else f"{shown} and {len(heavy) - most} more"
