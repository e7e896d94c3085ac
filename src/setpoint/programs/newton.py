"""Batches of programs by Newton's method on the exterior penalty, polished to exact vertices.

The multipliers of each minimum start the next one, and the weight of the penalty grows on the way
(an augmented Lagrangian). As soon as the positive multipliers are those of a vertex, the vertex is
solved for and checked: being feasible, with multipliers of the right sign, proves that it is
optimal.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.programs.active_set import Vertices, is_square
from setpoint.programs.penalty import PrimalDual, ProximalTerm, Sketch, minimise, residuals, slope
from setpoint.programs.scaling import equilibrate
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch

FIRST_WEIGHT, GROWTH, LAST_WEIGHT = 30.0, 3.0, 1e6  # of the penalty
RIDGE = 1e-7  # of the proximal term: small against the weight, makes Newton's matrix regular
OUTER_ROUNDS = 40  # of new multipliers; 3 to 6 are usual
SETTLED_DUAL = 1e-12  # change of the multipliers of a solved member, in units of the weight
STATIONARY, SLOPE_ROUNDING = 1e-10, 1e-15  # its slope, which rounds in units of the weight
FAR, ALONG_RAY = 1e4, 1e-7  # a step this long follows a ray, if it is one up to this much
POSITIVE_DUAL = 1e-9  # a multiplier above this is not zero, in a scaled program
VERTEX_ROUNDING = 1e-10  # largest violation at a proven vertex


def solve_by_newton(
    program: ProgramBatch, sketch: Sketch | None = None, *, square: float = 0.0
) -> SolutionBatch:
    """Solve all members together.

    Args:
        program: The programs.
        sketch: Form Newton's matrix from a sample of the rows.
        square: Add ``square/2 |z|^2`` to the costs: the solution is then unique and continuous in
            the costs, but no vertex.

    Returns:
        The solutions. A member that did not converge is ``unsolved``; often it has no solution.
    """
    scaled, scales = equilibrate(program)
    squares = square * scales.cost * scales.columns**2 / scales.right
    at, answer = _origin(scaled), _origin(scaled)
    steps = torch.zeros(program.members, dtype=torch.long, device=program.c.device)
    solved = torch.zeros_like(steps, dtype=torch.bool)
    live = torch.arange(program.members, device=program.c.device)
    part, weight = scaled, FIRST_WEIGHT
    for _ in range(OUTER_ROUNDS):
        before, zeros = at, torch.zeros_like(at.y)
        if square:
            term = ProximalTerm(squares[live], zeros)
        else:
            term = ProximalTerm(torch.full_like(at.y, RIDGE), at.y)
        at, took = minimise(part, at, weight, term, sketch)
        steps[live] += took
        at, done = _new_multipliers(part, at, weight, term.slope(at.y) if square else zeros)
        answer.put(live[done], at.pick(done))
        going = ~done
        if not square:
            vertex, proven = polish(part, at)
            answer.put(live[proven], vertex.pick(proven))
            done = done | proven
            going = ~(done | _on_a_ray(part, before, at))
        solved[live[done]] = True
        live, part, at = live[going], part.pick(going), at.pick(going)
        if not len(live):
            break
        weight = min(weight * GROWTH, LAST_WEIGHT)
    status = tuple("optimal" if yes else "unsolved" for yes in solved.tolist())
    solver, iterations = ("newton",) * len(status), tuple(steps.tolist())
    parts = (answer.y, answer.v, answer.w, answer.s)
    return scales.unscale(SolutionBatch(*parts, status, solver, iterations))


def _origin(program: ProgramBatch) -> PrimalDual:
    parts = (program.c, program.b, program.h, program.c)
    return PrimalDual(*(torch.zeros_like(x) for x in parts))


def _new_multipliers(
    program: ProgramBatch, at: PrimalDual, weight: float, extra_slope: Tensor
) -> tuple[PrimalDual, Tensor]:
    """The multipliers at a minimum of the penalty, and which members these already solve.

    ``extra_slope`` is the gradient of what the objective has besides ``c'y``.
    """
    r = residuals(program, at, weight)
    size = (slope(program, r) + extra_slope).abs().amax(1)
    stationary = size < STATIONARY + SLOPE_ROUNDING * weight
    v, s = r.rows.clamp(min=0), r.bounds.clamp(min=0)
    moved = [x - y for x, y in ((v, at.v), (r.equal, at.w), (s, at.s))]
    still = torch.cat(moved, 1).abs().amax(1) < SETTLED_DUAL * weight
    return PrimalDual(at.y, v, r.equal, s), still & stationary


def _on_a_ray(program: ProgramBatch, before: PrimalDual, at: PrimalDual) -> Tensor:
    """Which members diverge: multipliers along a Farkas ray, or ``y`` along a recession ray."""
    dv, dw, ds = at.v - before.v, at.w - before.w, at.s - before.s
    far = torch.cat([dv, dw, ds], 1).abs().amax(1).clamp(min=1)[:, None]
    balance = program.A.adjoint(dv / far) + program.E.adjoint(dw / far) - ds / far
    total = (program.b * dv / far).sum(1) + (program.h * dw / far).sum(1)
    low = torch.cat([dv, ds], 1).amin(1) / far[:, 0]
    contradiction = (far[:, 0] > 1) & (low > -ALONG_RAY) & (total < -ALONG_RAY)
    contradiction &= balance.abs().amax(1) < ALONG_RAY
    d = at.y - before.y
    long = d.abs().amax(1).clamp(min=1)[:, None]
    d = d / long
    worst = torch.cat([program.A.times(d), program.E.times(d).abs()], 1)
    worst = torch.cat([worst, -d], 1) if program.nonnegative else worst
    falling = (long[:, 0] > FAR) & ((program.c * d).sum(1) < -ALONG_RAY)
    return contradiction | (falling & ~(worst > ALONG_RAY).any(1))


def polish(program: ProgramBatch, at: PrimalDual) -> tuple[PrimalDual, Tensor]:
    """The vertices of the positive multipliers, and which of them are proven optimal."""
    rows, bounds = at.v > POSITIVE_DUAL, at.s > POSITIVE_DUAL
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
    v, w = system.solve_transposed(-program.c)
    s = program.c + program.A.adjoint(v) + program.E.adjoint(w)
    if program.nonnegative:
        lack = torch.cat([program.A.times(z) - program.b, -z], 1)
    else:
        lack = program.A.times(z) - program.b
    off = torch.cat([program.E.times(z) - program.h, s * ~bounds], 1).abs()
    wrong_sign = -torch.cat([v, s * bounds], 1)
    room_z = VERTEX_ROUNDING * (1 + z.abs().amax(1))
    room_v = VERTEX_ROUNDING * (1 + torch.cat([v, w.abs(), s], 1).amax(1))
    optimal = system.regular & _all_below(lack, room_z) & _all_below(wrong_sign, room_v)
    optimal &= _all_below(off, torch.minimum(room_z, room_v))
    point = PrimalDual(z, v.clamp(min=0), w, (s * bounds).clamp(min=0))
    return point, optimal


def _all_below(x: Tensor, room: Tensor) -> Tensor:
    return (x <= room[:, None]).all(1)  # false for NaN, true for no columns
