"""Batches of programs by Newton's method on the exterior penalty, polished to exact vertices.

The multipliers of each minimum are where the next one starts, and the penalty grows on the way
(an augmented Lagrangian), so nothing is guessed. As soon as the positive multipliers name a vertex
it is solved for and checked: feasible, with multipliers of the right sign, is a proof that it is
optimal.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.programs.active_set import Vertices, is_square
from setpoint.programs.penalty import PrimalDual, ProximalTerm, Sketch, minimise, residuals, slope
from setpoint.programs.scaling import equilibrate
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch

FIRST, GROWTH, LAST = 30.0, 3.0, 1e6  # the weight of the penalty
RIDGE = (
    1e-7  # of the proximal term: tiny against the weight, enough to make Newton's matrix regular
)
ROUNDS = 40  # of new multipliers; 3 to 6 are usual
EXACT = 1e-12  # residuals of a member that is solved without being a vertex
FLAT, ROUNDING = 1e-10, 1e-15  # its slope, which rounds in units of the weight
FAR, NEARLY = 1e4, 1e-7  # a step this long is along a ray, if it is one up to this much


def solve_by_newton(program: ProgramBatch, sketch: Sketch | None = None) -> SolutionBatch:
    """Solve all members together; one that has not arrived is ``unsolved`` (often it has none)."""
    scaled, scales = equilibrate(program)
    at, answer = origin(scaled), origin(scaled)
    steps = torch.zeros(program.members, dtype=torch.long, device=program.c.device)
    solved = torch.zeros_like(steps, dtype=torch.bool)
    live = torch.arange(program.members, device=program.c.device)
    part, weight = scaled, FIRST
    for _ in range(ROUNDS):
        before = at
        anchor = ProximalTerm(torch.full_like(at.y, RIDGE), at.y)
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
    found = SolutionBatch(
        *(answer.y, answer.v, answer.w, answer.s),
        status=words,
        solver=("newton",) * len(words),
        iterations=tuple(steps.tolist()),
    )
    return scales.back(found)


def origin(program: ProgramBatch) -> PrimalDual:
    """Zeros."""
    parts = (program.c, program.b, program.h, program.c)
    return PrimalDual(*(torch.zeros_like(x) for x in parts))


def new_multipliers(
    program: ProgramBatch, at: PrimalDual, weight: float, pull: Tensor
) -> tuple[PrimalDual, Tensor]:
    """The multipliers at a minimum of the penalty, and which members these already solve.

    ``pull`` is the slope of what the objective has besides ``c'y``.
    """
    r = residuals(program, at, weight)
    stationary = (slope(program, r) + pull).abs().amax(1) < FLAT + ROUNDING * weight
    v, s = r.rows.clamp(min=0), r.bounds.clamp(min=0)
    moved = [x - y for x, y in ((v, at.v), (r.equal, at.w), (s, at.s))]
    still = torch.cat(moved, 1).abs().amax(1) < EXACT * weight
    return PrimalDual(at.y, v, r.equal, s), still & stationary


def _on_a_ray(program: ProgramBatch, before: PrimalDual, at: PrimalDual) -> Tensor:
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


# ------------------------------------------------------------------------------------------------
# From nearly optimal to exact: solve for the vertex that the multipliers name, and check it.


POSITIVE = 1e-9  # a multiplier above this is one, in a scaled program
VERTEX_ROUNDING = 1e-10  # what a proven vertex may lack


def polish(program: ProgramBatch, at: PrimalDual) -> tuple[PrimalDual, Tensor]:
    """The vertices named by positive multipliers, and which of them are proven optimal."""
    rows, bounds = at.v > POSITIVE, at.s > POSITIVE
    named = is_square(program, rows, bounds)
    proven = torch.zeros_like(named)
    vertex = PrimalDual(*(torch.zeros_like(x) for x in (at.y, at.v, at.w, at.s)))
    if named.any():
        part = program.pick(named)
        there, optimal = _solve_vertex(part, rows[named], bounds[named])
        vertex.put(named, there)
        proven[named] = optimal
    return vertex, proven


def _solve_vertex(program: ProgramBatch, rows: Tensor, bounds: Tensor) -> tuple[PrimalDual, Tensor]:
    system = Vertices(program, rows, bounds)
    z = system.solve(program.b, program.h)
    v, w = system.transposed(-program.c)
    s = program.c + program.A.adjoint(v) + program.E.adjoint(w)
    if program.nonnegative:
        lack = torch.cat([program.A.times(z) - program.b, -z], 1)
    else:
        lack = program.A.times(z) - program.b
    off = torch.cat([program.E.times(z) - program.h, s * ~bounds], 1).abs()
    wrong_sign = -torch.cat([v, s * bounds], 1)
    room_z = VERTEX_ROUNDING * (1 + z.abs().amax(1))
    room_v = VERTEX_ROUNDING * (1 + torch.cat([v, w.abs(), s], 1).amax(1))
    optimal = system.regular & _below(lack, room_z) & _below(wrong_sign, room_v)
    optimal &= _below(off, torch.minimum(room_z, room_v))
    point = PrimalDual(z, v.clamp(min=0), w, (s * bounds).clamp(min=0))
    return point, optimal


def _below(x: Tensor, room: Tensor) -> Tensor:
    return (x <= room[:, None]).all(1)  # false for NaN, true for no columns
