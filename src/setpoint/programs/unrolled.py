"""The method as published, for comparison: Newton steps without a line search, unrolled.

Meng et al. (2021), equations 3 to 7, with the numbers of their code as defaults: twenty full steps
``y - step_size (H + shift I)^-1 grad g`` on ``g(y) = |max(A y - b, 0)|^2 / 2 + penalty c'y``. Two
results can be read off the last iterate ``y``:

* ``"active"``, as their code does it: the rows that are violated are taken for the active ones, and
  ``z = (A_J' A_J + ridge I)^-1 A_J' b_J``. Gradients pass only through this line (section 4.2), as
  which rows are violated is an index. The ridge shortens values and gradients by 1 %.
* ``"iterate"``: ``y`` itself, which is the minimum of ``g`` once the steps have converged, within
  the order of ``penalty`` of the solution. Gradients pass through every step by the product rule of
  section 4.2, with a step function that has no derivative (remark 3), and reach ``c`` too.

Without a line search most programs do not converge at these numbers: ``info.status`` says which.
Short enough steps do (theorem 2): below ``2 shift / |A|^2`` no step raises ``g``, as the gradient
of ``g`` changes by at most ``|A|^2`` times the step and ``H + shift I`` is at least ``shift``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import at_least_zero, positive, whole
from setpoint.programs.newton import Sketch
from setpoint.programs.standard_form import ProgramBatch, SolutionBatch

FIRST_RIDGE = 1e-3  # of the least-squares solution that is the first iterate
CONVERGED = 1e-2  # residuals below this, at a scale of 1: the ridge allows no less


@dataclass(frozen=True)
class Unrolled:
    """Settings of the published method: ``linear_program(..., unroll=Unrolled(steps=50))``.

    Attributes:
        steps: How many Newton steps are unrolled.
        step_size: How much of each step is taken (lambda in equation 4).
        penalty: The weight of the costs beside the penalty (epsilon in equation 3).
        shift: What is added to the diagonal of Newton's matrix (rho in equation 5).
        ridge: The same for the system of the active rows.
        result: ``"active"`` or ``"iterate"``: what is returned, and where gradients pass.

    Examples:
        >>> import torch
        >>> from setpoint.programs import Unrolled, linear_program
        >>> b = torch.tensor([-1.0, -2.0], dtype=torch.float64, requires_grad=True)
        >>> settings = Unrolled(penalty=1e-4, result="iterate")
        >>> z, info = linear_program(torch.ones(2), -torch.eye(2), b, unroll=settings)
        >>> z.sum().backward()
        >>> [round(x, 3) for x in (*z.tolist(), *b.grad.tolist())]
        [1.0, 2.0, -1.0, -1.0]
    """

    steps: int = 20
    step_size: float = 1.0
    penalty: float = 1e-3
    shift: float = 1e-4
    ridge: float = 1e-2
    result: Literal["active", "iterate"] = "active"

    def __post_init__(self) -> None:
        whole(self.steps, "steps", least=1)
        for name in ("step_size", "penalty", "shift"):
            positive(getattr(self, name), name)
        at_least_zero(self.ridge, "ridge")
        if self.result not in ("active", "iterate"):
            raise ValueError(f"result must be 'active' or 'iterate'; got {self.result!r}.")

    def solve(
        self, program: ProgramBatch, sketch: Sketch | None = None
    ) -> tuple[Tensor, SolutionBatch]:
        """Solutions in the graph, and as a record.

        With a sketch every step sees a sample of the rows (equations 6 and 7, with the residual
        where the paper's equation 6 has a step function).
        """
        A, b = _as_inequalities(program)
        n = program.c.shape[1]
        y = _ridge_least_squares(A[:, :n], b[:, :n], FIRST_RIDGE)
        for _ in range(self.steps):
            rows, right = (A, b) if sketch is None else sketch.rows(A, b)
            y = y - self.step_size * self._direction(rows, right, program.c, y)
        over = (A @ y[..., None])[..., 0] - b
        v = over.clamp(min=0) / self.penalty
        z = y
        if self.result == "active":
            on = (v > 0)[..., None]
            z = _ridge_least_squares(A * on, b * on[..., 0], self.ridge)
        return z, self._as_solution(program.detach(), z.detach(), v.detach())

    def _direction(self, A: Tensor, b: Tensor, c: Tensor, y: Tensor) -> Tensor:
        """Equation 5, in the graph of its arguments."""
        over = (A @ y[..., None])[..., 0] - b
        gradient = (over.clamp(min=0)[:, None] @ A)[:, 0] + self.penalty * c
        return _ridge_solve((A * (over > 0)[..., None]).mT @ A, gradient, self.shift)

    def _as_solution(self, program: ProgramBatch, z: Tensor, v: Tensor) -> SolutionBatch:
        m, p = program.b.shape[1], program.h.shape[1]
        w = v[:, m : m + p] - v[:, m + p : m + 2 * p]
        s = v[:, m + 2 * p :] if program.nonnegative else torch.zeros_like(z)
        off = (program.E.times(z) - program.h).abs()
        over = torch.cat([program.A.times(z) - program.b, off], 1)
        slope = program.c + program.A.adjoint(v[:, :m]) + program.E.adjoint(w) - s
        room = CONVERGED * (1 + z.abs().amax(1, keepdim=True))
        good = (over <= room).all(1) & (slope.abs().amax(1) <= CONVERGED)
        words = tuple("optimal" if yes else "unsolved" for yes in good.tolist())
        names, counts = ("published",) * len(words), (self.steps,) * len(words)
        return SolutionBatch(z, v[:, :m], w, s, words, names, counts)


def _as_inequalities(program: ProgramBatch) -> tuple[Tensor, Tensor]:
    """Everything as ``A z <= b`` (section 3.1): an equality is two, a bound one more."""
    A, E, n = program.A.values, program.E.values, program.c.shape[1]
    rows, right = [A, E, -E], [program.b, program.h, -program.h]
    if program.nonnegative:
        rows.append(-torch.eye(n, dtype=A.dtype, device=A.device).expand(len(A), n, n))
        right.append(torch.zeros_like(program.c))
    return torch.cat(rows, 1), torch.cat(right, 1)


def _ridge_least_squares(A: Tensor, b: Tensor, ridge: float) -> Tensor:
    return _ridge_solve(A.mT @ A, (b[:, None] @ A)[:, 0], ridge)


def _ridge_solve(H: Tensor, right: Tensor, ridge: float) -> Tensor:
    eye = torch.eye(H.shape[-1], dtype=H.dtype, device=H.device)
    y: Tensor = torch.linalg.solve(H + ridge * eye, right)
    return y
