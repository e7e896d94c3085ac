"""The exterior penalty with multipliers, and Newton's method on it (Mangasarian 2004).

Meng et al. (2021), equations 3 to 5, minimise ``c'y + |max(A y - b, 0)|^2 / (2 eps)``. With
multipliers inside, ``max(A y - b + eps v, 0)``, no ``eps`` has to be guessed: a minimum gives
better multipliers, and these a better minimum. The function is piecewise quadratic; Newton's step
with an exact line search ends it in finitely many steps, where full steps need not end at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint.layers.linear_program.gram import newton_direction
from setpoint.layers.linear_program.line_search import exact_step
from setpoint.layers.linear_program.program import Program
from setpoint.layers.linear_program.sketch import Sketch

STEPS = 60  # of Newton at most for one setting of the multipliers; 5 to 20 is usual
ARMIJO = 0.25  # of the fall that the slope promises; a parabola gives half of it
FLAT = 1e-11  # a slope of zero, in a program whose costs are near 1


@dataclass(frozen=True)
class Point:
    """Where the iteration stands: the solution ``y`` and the multipliers, as in ``Solution``."""

    y: Tensor
    v: Tensor
    w: Tensor
    s: Tensor

    def pick(self, members: Tensor) -> Point:
        """Some members of the batch."""
        return Point(self.y[members], self.v[members], self.w[members], self.s[members])

    def put(self, members: Tensor, other: Point) -> None:
        """Overwrite some members."""
        for name in ("y", "v", "w", "s"):
            getattr(self, name)[members] = getattr(other, name)


@dataclass(frozen=True)
class Residuals:
    """What constraints lack, in units of the multipliers: ``weight (A y - b) + v`` and so on."""

    rows: Tensor
    equal: Tensor
    bounds: Tensor


def residuals(program: Program, at: Point, weight: float) -> Residuals:
    """The shifted residuals; their positive parts are the next multipliers."""
    rows = weight * (program.A.times(at.y) - program.b) + at.v
    equal = weight * (program.E.times(at.y) - program.h) + at.w
    bounds = at.s - weight * at.y if program.nonnegative else torch.full_like(at.y, -torch.inf)
    return Residuals(rows, equal, bounds)


def slope(program: Program, r: Residuals) -> Tensor:
    """The gradient of the penalty (without the proximal term)."""
    by_rows = program.A.adjoint(r.rows.clamp(min=0)) + program.E.adjoint(r.equal)
    return program.c + by_rows - r.bounds.clamp(min=0)


@dataclass(frozen=True)
class Anchor:
    """A term ``sum weights/2 (y - centre)^2`` that ties the minimum to a point, ``[batch, n]``."""

    weights: Tensor
    centre: Tensor

    def pick(self, members: Tensor) -> Anchor:
        """Some members of the batch."""
        return Anchor(self.weights[members], self.centre[members])

    def slope(self, y: Tensor) -> Tensor:
        """The gradient of the term."""
        return self.weights * (y - self.centre)


def minimise(
    program: Program, at: Point, weight: float, anchor: Anchor, sketch: Sketch | None = None
) -> tuple[Point, Tensor]:
    """The minimum of the penalty plus the anchor's term, and the steps it took, ``[batch]``.

    Members that have arrived leave the batch, so that stragglers cost only themselves.
    """
    y = at.y.clone()
    steps = torch.zeros(len(y), dtype=torch.long, device=y.device)
    live = torch.arange(len(y), device=y.device)
    part, here = program, at
    before, full = torch.empty(0), torch.zeros_like(live, dtype=torch.bool)
    for _ in range(STEPS):
        r = residuals(part, here, weight)
        gradient = slope(part, r) + anchor.slope(here.y)
        piece = torch.cat([r.rows, r.bounds], 1) > 0
        moving = gradient.abs().amax(1) > FLAT * (1 + here.y.abs().amax(1))
        if full.any():  # a full step that stays on its quadratic piece ends at the minimum
            moving &= ~full | (piece != before).any(1)
        if not moving.all():
            live, anchor, gradient = live[moving], anchor.pick(moving), gradient[moving]
            part, here, piece = part.pick(moving), here.pick(moving), piece[moving]
            r = Residuals(r.rows[moving], r.equal[moving], r.bounds[moving])
        if not len(live):
            break
        rows, bounds = piece[:, : r.rows.shape[1]], piece[:, r.rows.shape[1] :]
        diagonal = weight * bounds + anchor.weights
        d = newton_direction(part, rows, weight, diagonal, gradient, sketch)
        t = _step(part, r, d, weight, anchor, here.y)
        here = replace(here, y=here.y + t[:, None] * d)
        before, full = piece, (t - 1).abs() < 1e-9
        if sketch is not None:
            full &= sketch.is_exact(rows)
        y[live] = here.y
        steps[live] += 1
    return replace(at, y=y), steps


def _step(
    program: Program, r: Residuals, d: Tensor, weight: float, anchor: Anchor, y: Tensor
) -> Tensor:
    """How far to go: all the way where Armijo's rule allows it, else to the minimum on the line."""
    equal = weight * program.E.times(d)
    start = ((program.c + anchor.slope(y)) * d).sum(1) + (r.equal * equal).sum(1) / weight
    curve = (equal * equal).sum(1) / weight + (anchor.weights * d * d).sum(1)
    by = weight**0.5  # residuals and their speeds are in units of the multipliers
    a, rows = program.A.times(d) * by, r.rows / by
    if program.nonnegative:
        a, rows = torch.cat([a, -by * d], 1), torch.cat([rows, r.bounds / by], 1)
    now, full = rows.clamp(min=0), (rows + a).clamp(min=0)
    fall = start + (a * now).sum(1)
    change = start + curve / 2 + (full * full - now * now).sum(1) / 2
    t = torch.ones_like(start)
    short = ~(change <= ARMIJO * fall)
    if short.any():
        t[short] = exact_step(start[short], curve[short], rows[short], a[short])
    return t
