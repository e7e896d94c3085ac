"""Programs with a square added, ``c'z + weight/2 |z|^2``, and what their constraints leave free.

The penalty method does not mind the square: it is an anchor at zero instead of at the last point.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.layers.linear_program.active import Active, active, least_squares
from setpoint.layers.linear_program.errors import ProgramError
from setpoint.layers.linear_program.newton import (
    FIRST,
    GROWTH,
    LAST,
    ROUNDS,
    new_multipliers,
    origin,
)
from setpoint.layers.linear_program.penalty import Anchor, minimise
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.scaling import equilibrate


def solve_quadratic(program: Program, square: float) -> Solution:
    """The solutions with ``square/2 |z|^2`` added: unique, and continuous in the costs."""
    scaled, scales = equilibrate(program)
    weights = square * scales.cost * scales.columns**2 / scales.right
    anchor = Anchor(weights, torch.zeros_like(program.c))
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
    return scales.back(Solution(answer.y, answer.v, answer.w, answer.s, status, names, none))


def free_part(program: Program, square: float, g: Tensor, among: Tensor) -> Tensor:
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
