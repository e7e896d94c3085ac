"""Batches of programs by Newton's method on the exterior penalty, polished to exact vertices.

The multipliers of each minimum are where the next one starts, and the penalty grows on the way
(an augmented Lagrangian), so nothing is guessed. As soon as the positive multipliers name a vertex
it is solved for and checked: feasible, with multipliers of the right sign, is a proof that it is
optimal.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.layers.linear_program.penalty import Anchor, Point, minimise, residuals, slope
from setpoint.layers.linear_program.polish import polish
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.scaling import equilibrate
from setpoint.layers.linear_program.sketch import Sketch

FIRST, GROWTH, LAST = 30.0, 3.0, 1e6  # the weight of the penalty
RIDGE = (
    1e-7  # of the proximal term: tiny against the weight, enough to make Newton's matrix regular
)
ROUNDS = 40  # of new multipliers; 3 to 6 are usual
EXACT = 1e-12  # residuals of a member that is solved without being a vertex
FLAT, ROUNDING = 1e-10, 1e-15  # its slope, which rounds in units of the weight
FAR, NEARLY = 1e4, 1e-7  # a step this long is along a ray, if it is one up to this much


def solve_by_newton(program: Program, sketch: Sketch | None = None) -> Solution:
    """Solve all members together; one that has not arrived is ``unsolved`` (often it has none)."""
    scaled, scales = equilibrate(program)
    at, answer = origin(scaled), origin(scaled)
    steps = torch.zeros(program.members, dtype=torch.long, device=program.c.device)
    solved = torch.zeros_like(steps, dtype=torch.bool)
    live = torch.arange(program.members, device=program.c.device)
    part, weight = scaled, FIRST
    for _ in range(ROUNDS):
        before = at
        anchor = Anchor(torch.full_like(at.y, RIDGE), at.y)
        at, took = minimise(part, at, weight, anchor, sketch)
        steps[live] += took
        at, settled = new_multipliers(part, at, weight, torch.zeros_like(at.y))
        vertex, proven = polish(part, at)
        answer.put(live[settled], at.pick(settled))
        answer.put(live[proven], vertex.pick(proven))
        solved[live[settled | proven]] = True
        going = ~(settled | proven | _on_a_ray(part, before, at))
        live, part, at = live[going], part.pick(going), at.pick(going)
        if not len(live):
            break
        weight = min(weight * GROWTH, LAST)
    words = tuple("optimal" if yes else "unsolved" for yes in solved.tolist())
    found = Solution(
        *(answer.y, answer.v, answer.w, answer.s),
        status=words,
        solver=("newton",) * len(words),
        iterations=tuple(steps.tolist()),
    )
    return scales.back(found)


def origin(program: Program) -> Point:
    """Zeros."""
    parts = (program.c, program.b, program.h, program.c)
    return Point(*(torch.zeros_like(x) for x in parts))


def new_multipliers(
    program: Program, at: Point, weight: float, pull: Tensor
) -> tuple[Point, Tensor]:
    """The multipliers at a minimum of the penalty, and which members these already solve.

    ``pull`` is the slope of what the objective has besides ``c'y``.
    """
    r = residuals(program, at, weight)
    stationary = (slope(program, r) + pull).abs().amax(1) < FLAT + ROUNDING * weight
    v, s = r.rows.clamp(min=0), r.bounds.clamp(min=0)
    moved = [x - y for x, y in ((v, at.v), (r.equal, at.w), (s, at.s))]
    still = torch.cat(moved, 1).abs().amax(1) < EXACT * weight
    return Point(at.y, v, r.equal, s), still & stationary


def _on_a_ray(program: Program, before: Point, at: Point) -> Tensor:
    """Which members run away: multipliers along a contradiction, or ``y`` along a falling ray."""
    dv, dw, ds = at.v - before.v, at.w - before.w, at.s - before.s
    far = torch.cat([dv, dw, ds], 1).abs().amax(1).clamp(min=1)[:, None]
    balance = program.A.adjoint(dv / far) + program.E.adjoint(dw / far) - ds / far
    total = (program.b * dv / far).sum(1) + (program.h * dw / far).sum(1)
    low = torch.cat([dv, ds], 1).amin(1) / far[:, 0]
    contradiction = (far[:, 0] > 1) & (low > -NEARLY) & (total < -NEARLY)
    contradiction &= balance.abs().amax(1) < NEARLY
    d = at.y - before.y
    long = d.abs().amax(1).clamp(min=1)[:, None]
    d = d / long
    worst = torch.cat([program.A.times(d), program.E.times(d).abs()], 1)
    worst = torch.cat([worst, -d], 1) if program.nonnegative else worst
    falling = (long[:, 0] > FAR) & ((program.c * d).sum(1) < -NEARLY)
    return contradiction | (falling & ~(worst > NEARLY).any(1))
