"""From nearly optimal to exact: solve for the vertex that the multipliers name, and check it."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.layers.linear_program.penalty import Point
from setpoint.layers.linear_program.program import Program
from setpoint.layers.linear_program.systems import Vertices, is_square

POSITIVE = 1e-9  # a multiplier above this is one, in a scaled program
ROUNDING = 1e-10  # what a proven vertex may lack


def polish(program: Program, at: Point) -> tuple[Point, Tensor]:
    """The vertices named by positive multipliers, and which of them are proven optimal."""
    rows, bounds = at.v > POSITIVE, at.s > POSITIVE
    named = is_square(program, rows, bounds)
    proven = torch.zeros_like(named)
    vertex = Point(*(torch.zeros_like(x) for x in (at.y, at.v, at.w, at.s)))
    if named.any():
        part = program.pick(named)
        there, optimal = _solve(part, rows[named], bounds[named])
        vertex.put(named, there)
        proven[named] = optimal
    return vertex, proven


def _solve(program: Program, rows: Tensor, bounds: Tensor) -> tuple[Point, Tensor]:
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
    room_z = ROUNDING * (1 + z.abs().amax(1))
    room_v = ROUNDING * (1 + torch.cat([v, w.abs(), s], 1).amax(1))
    optimal = system.regular & _below(lack, room_z) & _below(wrong_sign, room_v)
    optimal &= _below(off, torch.minimum(room_z, room_v))
    point = Point(z, v.clamp(min=0), w, (s * bounds).clamp(min=0))
    return point, optimal


def _below(x: Tensor, room: Tensor) -> Tensor:
    return (x <= room[:, None]).all(1)  # false for NaN, true for no columns
