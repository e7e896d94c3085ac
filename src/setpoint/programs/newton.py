"""Batches of programs by Newton's method on the exterior penalty, polished to exact vertices.

Meng et al. (2021), equations 3 to 5, minimise ``c'y + |max(A y - b, 0)|^2 / (2 eps)`` (Mangasarian
2004). With multipliers inside, ``max(A y - b + eps v, 0)``, no ``eps`` has to be guessed: a minimum
gives better multipliers, and these a better minimum, while the weight of the penalty grows (an
augmented Lagrangian). The function is piecewise quadratic; Newton's steps with an exact line search
end in finitely many steps, where full steps need not end at all. As soon as the positive
multipliers are those of a vertex, the vertex is solved for and checked: being feasible, with
multipliers of the right sign, proves that it is optimal.

Newton's matrix is ``H = weight (A_J' A_J + E' E) + D``, where ``J`` are the violated rows and ``D``
is diagonal: the violated bounds, and a ridge that keeps ``H`` regular. ``A_J' A_J`` may come from a
sample of the rows (equations 6 and 7): the line search uses the exact slope, so a sample costs
steps, never accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import block_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu
from torch import Tensor

from setpoint._checks import whole
from setpoint.programs.active_set import Vertices, is_square
from setpoint.programs.standard_form import PrimalDual, ProgramBatch, SolutionBatch, equilibrate

FIRST_WEIGHT, GROWTH, LAST_WEIGHT = 30.0, 3.0, 1e6  # of the penalty
RIDGE = 1e-7  # of the proximal term: small against the weight, makes Newton's matrix regular
OUTER_ROUNDS = 20  # of new multipliers; 3 to 6 are usual, and no solution takes them all
SETTLED_DUAL = 1e-12  # change of the multipliers of a solved member, in units of the weight
STATIONARY, SLOPE_ROUNDING = 1e-10, 1e-15  # its slope, which rounds in units of the weight
POSITIVE_DUAL = 1e-9  # a multiplier above this is not zero, in a scaled program
VERTEX_ROUNDING = 1e-10  # largest violation at a proven vertex
STEPS_PER_MINIMUM = 60  # at most for one setting of the multipliers; 5 to 20 are usual
ARMIJO = 0.25  # of the decrease that the slope predicts; a parabola gives half of it
ZERO_SLOPE = 1e-11  # in a program whose costs are near 1
ROWS_PER_DIMENSION = 3  # of a sketch; fewer cost more steps: benchmarks/programs/sketching.py
PROBES = 8  # random vectors that estimate the dimension
LONG_ROW = 64  # entries; longer rows stay out of Newton's matrix


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
    at, answer = PrimalDual.zeros(scaled), PrimalDual.zeros(scaled)
    steps = torch.zeros(program.members, dtype=torch.long, device=program.c.device)
    solved = torch.zeros_like(steps, dtype=torch.bool)
    live = torch.arange(program.members, device=program.c.device)
    part, weight = scaled, FIRST_WEIGHT
    for _ in range(OUTER_ROUNDS):
        zeros = torch.zeros_like(at.z)
        if square:
            term = ProximalTerm(squares[live], zeros)
        else:
            term = ProximalTerm(torch.full_like(at.z, RIDGE), at.z)
        at, took = minimise(part, at, weight, term, sketch)
        steps[live] += took
        at, done = _new_multipliers(part, at, weight, term.slope(at.z) if square else zeros)
        answer.put(live[done], at.pick(done))
        if not square:
            vertex, proven = polish(part, at)
            answer.put(live[proven], vertex.pick(proven))
            done = done | proven
        solved[live[done]] = True
        going = ~done
        live, part, at = live[going], part.pick(going), at.pick(going)
        if not len(live):
            break
        weight = min(weight * GROWTH, LAST_WEIGHT)
    status = tuple("optimal" if yes else "unsolved" for yes in solved.tolist())
    solver, iterations = ("newton",) * len(status), tuple(steps.tolist())
    found = SolutionBatch(**vars(answer), status=status, solver=solver, iterations=iterations)
    return scales.unscale(found)


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
    return PrimalDual(at.z, v, r.equal, s), still & stationary


def polish(program: ProgramBatch, at: PrimalDual) -> tuple[PrimalDual, Tensor]:
    """The vertices of the positive multipliers, and which of them are proven optimal."""
    rows, bounds = at.v > POSITIVE_DUAL, at.s > POSITIVE_DUAL
    named = is_square(program, rows, bounds)
    proven = torch.zeros_like(named)
    vertex = PrimalDual.zeros(program)
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


@dataclass(frozen=True)
class Residuals:
    """Violations in units of the multipliers: ``weight (A y - b) + v`` and so on."""

    rows: Tensor
    equal: Tensor
    bounds: Tensor


def residuals(program: ProgramBatch, at: PrimalDual, weight: float) -> Residuals:
    """The shifted residuals; their positive parts are the next multipliers."""
    rows = weight * (program.A.times(at.z) - program.b) + at.v
    equal = weight * (program.E.times(at.z) - program.h) + at.w
    bounds = at.s - weight * at.z if program.nonnegative else torch.full_like(at.z, -torch.inf)
    return Residuals(rows, equal, bounds)


def slope(program: ProgramBatch, r: Residuals) -> Tensor:
    """The gradient of the penalty (without the proximal term)."""
    by_rows = program.A.adjoint(r.rows.clamp(min=0)) + program.E.adjoint(r.equal)
    return program.c + by_rows - r.bounds.clamp(min=0)


@dataclass(frozen=True)
class ProximalTerm:
    """A term ``sum weights/2 (y - centre)^2`` of the objective; both ``[batch, n]``."""

    weights: Tensor
    centre: Tensor

    def pick(self, members: Tensor) -> ProximalTerm:
        """Some members of the batch."""
        return ProximalTerm(self.weights[members], self.centre[members])

    def slope(self, y: Tensor) -> Tensor:
        """The gradient of the term."""
        return self.weights * (y - self.centre)


def minimise(
    program: ProgramBatch,
    at: PrimalDual,
    weight: float,
    proximal: ProximalTerm,
    sketch: Sketch | None = None,
) -> tuple[PrimalDual, Tensor]:
    """The minimum of the penalty plus the proximal term, and the steps it took, ``[batch]``.

    Members that have converged leave the batch, so that slow ones cost only themselves.
    """
    z = at.z.clone()
    steps = torch.zeros(len(z), dtype=torch.long, device=z.device)
    live = torch.arange(len(z), device=z.device)
    part, here = program, at
    before, full = torch.empty(0), torch.zeros_like(live, dtype=torch.bool)
    for _ in range(STEPS_PER_MINIMUM):
        r = residuals(part, here, weight)
        gradient = slope(part, r) + proximal.slope(here.z)
        piece = torch.cat([r.rows, r.bounds], 1) > 0
        moving = gradient.abs().amax(1) > ZERO_SLOPE * (1 + here.z.abs().amax(1))
        if full.any():  # a full step that stays on its quadratic piece ends at the minimum
            moving &= ~full | (piece != before).any(1)
        if not moving.all():
            live, proximal, gradient = live[moving], proximal.pick(moving), gradient[moving]
            part, here, piece = part.pick(moving), here.pick(moving), piece[moving]
            r = Residuals(r.rows[moving], r.equal[moving], r.bounds[moving])
        if not len(live):
            break
        rows, bounds = piece[:, : r.rows.shape[1]], piece[:, r.rows.shape[1] :]
        diagonal = weight * bounds + proximal.weights
        d = newton_direction(part, rows, weight, diagonal, gradient, sketch)
        t = _step_length(part, r, d, weight, proximal, here.z)
        here = replace(here, z=here.z + t[:, None] * d)
        before, full = piece, (t - 1).abs() < 1e-9
        if sketch is not None:
            full &= sketch.is_exact(rows)
        z[live] = here.z
        steps[live] += 1
    return replace(at, z=z), steps


def _step_length(
    program: ProgramBatch, r: Residuals, d: Tensor, weight: float, proximal: ProximalTerm, y: Tensor
) -> Tensor:
    """The length of the step: 1 where Armijo's rule allows it, else to the minimum on the line."""
    equal = weight * program.E.times(d)
    start = ((program.c + proximal.slope(y)) * d).sum(1) + (r.equal * equal).sum(1) / weight
    curve = (equal * equal).sum(1) / weight + (proximal.weights * d * d).sum(1)
    by = weight**0.5  # residuals and their derivatives are in units of the multipliers
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


def exact_step(start: Tensor, curve: Tensor, r: Tensor, a: Tensor) -> Tensor:
    """The ``t > 0`` where ``start + curve t + sum_i a_i max(r_i + a_i t, 0)`` is zero.

    Along ``y + t d`` each residual is ``r + t a`` and counts only while it is positive, so the
    slope of the penalty is piecewise linear and increasing in ``t``: sort its breakpoints, sum up,
    and find the piece where it crosses 0.

    Args:
        start: The slope at 0 of the part that has no breakpoints, ``[batch]``.
        curve: Its second derivative, ``[batch]``.
        r: Residuals at 0, ``[batch, rows]``.
        a: Their derivatives, ``[batch, rows]``.
    """
    counts = (r > 0) | ((r == 0) & (a > 0))
    breaks = ((a > 0) & (r < 0)) | ((a < 0) & (r > 0))
    when, order = torch.where(breaks, -r / torch.where(breaks, a, 1), torch.inf).sort(1)
    a, r, breaks = a.gather(1, order), r.gather(1, order), breaks.gather(1, order)
    start, curve = start[:, None], curve[:, None]
    counts = counts.gather(1, order)
    start = start + (a * r * counts).sum(1, keepdim=True)
    curve = curve + (a * a * counts).sum(1, keepdim=True)
    change = a.sign() * breaks  # a row becomes violated if it rises, satisfied if it falls
    starts = torch.cat([start, start + (change * a * r).cumsum(1)], 1)
    curves = torch.cat([curve, curve + (change * a * a).cumsum(1)], 1)
    crossed = breaks & (starts[:, :-1] + curves[:, :-1] * torch.where(breaks, when, 0) >= 0)
    piece = torch.where(crossed.any(1), crossed.to(torch.uint8).argmax(1), breaks.sum(1))[:, None]
    start, curve = starts.gather(1, piece)[:, 0], curves.gather(1, piece)[:, 0]
    return torch.where(curve > 0, -start / torch.where(curve > 0, curve, 1), 1.0).clamp(min=0)


def newton_direction(
    program: ProgramBatch,
    rows: Tensor,
    weight: float,
    diagonal: Tensor,
    gradient: Tensor,
    sketch: Sketch | None = None,
) -> Tensor:
    """``-H^-1 gradient``, where ``rows`` marks the violated rows and ``diagonal`` is ``D``."""
    if program.is_sparse:
        return _sparse_direction(program, rows, weight, diagonal, gradient)
    A, E = program.A.values, program.E.values
    H = (A * rows[:, :, None]).mT @ A if sketch is None else sketch.gram(A, rows)
    if E.shape[1]:
        H += E.mT @ E
    H *= weight
    H.diagonal(dim1=1, dim2=2).add_(diagonal)
    factor, failed = torch.linalg.cholesky_ex(H)
    if failed.any():  # rounding: H is positive definite by its ridge
        H.diagonal(dim1=1, dim2=2).add_(1e-12 * weight)
        factor, _ = torch.linalg.cholesky_ex(H)
    return -torch.cholesky_solve(gradient[..., None], factor)[..., 0]


def _sparse_direction(
    program: ProgramBatch, rows: Tensor, weight: float, diagonal: Tensor, gradient: Tensor
) -> Tensor:
    """The same for sparse programs, whose members are blocks of one matrix.

    Long rows (an equality over all variables, say) are rows of an augmented system, since their
    squares would fill ``H``.
    """
    A = program.A.block_diagonal()[rows.cpu().numpy().ravel()]
    E = program.E.block_diagonal()
    both = csr_array(block_array([[A], [E]]) if E.shape[0] else A)
    long = np.diff(both.indptr) > LONG_ROW
    short, rest = both[~long], both[long]
    H = weight * (short.T @ short) + diags_array(diagonal.cpu().numpy().ravel())
    right = -gradient.cpu().numpy().ravel()
    if rest.shape[0]:
        H = block_array([[H, rest.T], [rest, -eye_array(rest.shape[0]) / weight]])
        right = np.concatenate([right, np.zeros(rest.shape[0])])
    H = H.tocsc()
    if H.nnz == H.shape[0]:  # every constraint bounds one variable: nothing to factor
        step = right / H.diagonal()
    else:
        step = splu(H, permc_spec="MMD_AT_PLUS_A").solve(right)[: gradient.numel()]
    return torch.from_numpy(step).to(gradient).reshape(gradient.shape)


@dataclass(frozen=True)
class Sketch:
    """A sample of ``size`` rows, weighted so that sums over it are unbiased."""

    size: int
    generator: torch.Generator | None = None

    @classmethod
    def of(
        cls, program: ProgramBatch, size: int | str, generator: torch.Generator | None
    ) -> Sketch:
        """A sample of the given size; ``"auto"``: a multiple of the rows' effective dimension.

        The dimension of ``G = A' A`` is ``tr(G)^2 / tr(G^2)``: ``n`` if the rows spread evenly over
        ``n`` directions, 1 if they are parallel. ``tr(G^2)`` is the mean of ``|G x|^2`` over random
        signs ``x``, so no ``n x n`` matrix is formed. The largest of the batch counts.
        """
        if size != "auto":
            return cls(whole(size, "sketch", least=1), generator)
        n = program.c.shape[1]
        draws = torch.randint(0, 2, (PROBES, n), generator=generator, dtype=program.c.dtype)
        square = torch.zeros_like(program.c[:, 0])
        for x in (2 * draws - 1).to(program.c.device):
            image = program.A.adjoint(program.A.times(x.expand_as(program.c)))
            square += (image * image).sum(1) / PROBES
        trace = program.A.values.square().flatten(1).sum(1)
        dimension = (trace**2 / (square + (square == 0))).clamp(1, n)
        most = float(dimension.max()) if len(dimension) else 1.0
        return cls(math.ceil(ROWS_PER_DIMENSION * most), generator)

    def gram(self, A: Tensor, on: Tensor) -> Tensor:
        """``A_J' A_J`` of the rows that are ``on``, from at most ``size`` of them per member.

        A small sample covers only some directions. For the others the true diagonal is mixed in,
        the more the fewer rows there are per variable.
        """
        m, n = A.shape[1:]
        if self.size >= m:
            return (A * on[:, :, None]).mT @ A
        draw = torch.rand(on.shape, generator=self.generator, dtype=A.dtype).to(A.device)
        kept = (draw + on.to(A.dtype)).topk(self.size, 1).indices
        some = A.gather(1, kept[:, :, None].expand(-1, -1, n)) * on.gather(1, kept)[:, :, None]
        count = on.sum(1)[:, None, None]
        share = torch.where(count > self.size, n / (n + self.size), 0.0)
        H = (1 - share) * (count / self.size).clamp(min=1) * (some.mT @ some)
        square = (A * A * on[:, :, None]).sum(1)
        H.diagonal(dim1=1, dim2=2).add_(share[:, 0] * square)
        return H

    def is_exact(self, on: Tensor) -> Tensor:
        """Which members have no more rows ``on`` than the sample, ``[batch]``."""
        return on.sum(1) <= self.size

    def rows(self, A: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The same sample of rows of every member, and their right sides."""
        m = A.shape[1]
        if self.size >= m:
            return A, b
        weight = (m / self.size) ** 0.5
        kept = torch.randperm(m, generator=self.generator)[: self.size].to(A.device)
        return A[:, kept] * weight, b[:, kept] * weight
