"""Programs without a solution: the errors, and the rays that prove them.

A Farkas ray: weights ``v >= 0`` and ``w`` under which the constraints add up to a contradiction.
A recession ray: a direction that stays feasible for ever and lowers the cost. Each is found by a
program of its own in a box of size 1, which always has a solution.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import diags_array, hstack, issparse
from torch import Tensor

from setpoint.programs.highs import run_highs
from setpoint.programs.standard_form import NumpyProgram, ProgramBatch, SolutionBatch

CLEAR = 1e-9  # a contradiction or slope below this share of its own terms is rounding
DUST = 1e-11  # entries of a ray below this share of the largest are rounding
Ray = tuple[Tensor, ...]


class ProgramError(ValueError):
    """A linear program without a solution.

    Attributes:
        member: Which member of the batch, in the batch's own shape; ``()`` for a single program.
        ray: The proof, as the two kinds below describe it; empty if there is none.
    """

    def __init__(
        self, message: str, member: tuple[int, ...] = (), ray: tuple[Tensor, ...] = ()
    ) -> None:
        super().__init__(message)
        self.member = member
        self.ray = ray


class InfeasibleProgram(ProgramError):
    """No ``z`` obeys all constraints.

    ``ray`` is ``(v, w)`` (Farkas): with ``v >= 0`` the sum ``v'(A z) + w'(E z)`` of the constraints
    is at least 0 for every admitted ``z`` (equal to 0 if ``z`` is free), while the right sides add
    up to ``v'b + w'h < 0``.
    """


class UnboundedProgram(ProgramError):
    """The objective has no lower bound.

    ``ray`` is ``(d,)``: from any feasible point one may go along ``d`` (``A d <= 0`` and
    ``E d = 0``, with ``d >= 0`` if ``z >= 0``), and every step lowers the cost, ``c'd < 0``.
    """


def prove_failures(
    program: ProgramBatch, found: SolutionBatch, *, strict: bool
) -> tuple[SolutionBatch, tuple[Ray, ...]]:
    """Prove why members have no solution.

    Returns the solutions with their final status, and one ray per member (empty if there is none).
    If ``strict``, raises for the first member without a solution, and names the others.
    """
    bad = [i for i, word in enumerate(found.status) if word != "optimal"]
    status = list(found.status)
    rays: list[Ray] = [()] * program.members
    for i in bad:
        status[i], rays[i] = _proof(program, i)
        if strict:
            raise _program_error(program, bad, status[i], rays[i])
    return replace(found, status=tuple(status)), tuple(rays)


def _proof(program: ProgramBatch, i: int) -> tuple[str, Ray]:
    """The status of a member without a solution, and its ray."""
    one = program.member(i)
    contradiction = farkas(one)
    if contradiction is not None:
        return "infeasible", tuple(torch.from_numpy(x).to(program.c) for x in contradiction)
    direction = recession(one)
    if direction is not None:
        return "unbounded", (torch.from_numpy(direction).to(program.c),)
    return "unsolved", ()


def _program_error(program: ProgramBatch, bad: list[int], status: str, ray: Ray) -> ProgramError:
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
            f"{_heaviest(ray[0], 'z')}. Bound these variables, for example by nonnegative=True, "
            "or change the sign of c.",
            place,
            ray,
        )
    return ProgramError(
        f"The linear program{where} was not solved, and is neither proven infeasible nor "
        "unbounded. Bring its rows and columns to similar scales.",
        place,
    )


def _contradiction(program: ProgramBatch, i: int, ray: Ray) -> str:
    parts = [_heaviest(x, name) for x, name in zip(ray, "AE", strict=True) if x.any()]
    if _needs_bounds(program, i, ray):
        parts.append("z >= 0")
    if sum(int(x.count_nonzero()) for x in ray) == len(parts) == 1:
        return f"row {parts[0]} has no entries, and its right side does not hold."
    return f"rows {' and '.join(parts)} contradict each other (their weights are in error.ray)."


def _needs_bounds(program: ProgramBatch, i: int, ray: Ray) -> bool:
    """Whether the rows add up to a contradiction only because no variable is negative."""
    if not program.nonnegative:
        return False
    one, (v, w) = program.member(i), (x.cpu().numpy() for x in ray)
    total, size = one.A.T @ v + one.E.T @ w, abs(one.A).T @ v + abs(one.E).T @ abs(w)
    return bool((total > CLEAR * size.max()).any())


def _heaviest(x: Tensor, name: str, most: int = 5) -> str:
    """The largest entries of a ray, as in ``A[3], A[7] and 2 more``."""
    heavy = [int(k) for k in x.abs().argsort(descending=True) if x[k] != 0]
    shown = ", ".join(f"{name}[{k}]" for k in sorted(heavy[:most]))
    return shown if len(heavy) <= most else f"{shown} and {len(heavy) - most} more"


def farkas(one: NumpyProgram) -> tuple[Any, Any] | None:
    """``(v, w)`` with ``A'v + E'w = 0`` (``>= 0`` if ``z >= 0``) and ``b'v + h'w < 0``, or None."""
    A, left = _unit_rows(one.A)
    E, right = _unit_rows(one.E)
    cost = np.concatenate([left * one.b, right * one.h])
    if not len(cost):
        return None
    rows = _beside(A, E)
    zeros = np.zeros(len(one.c))
    bounds = [(0, 1)] * len(one.b) + [(-1, 1)] * len(one.h)
    if one.nonnegative:
        answer = run_highs(cost, -rows, zeros, None, (), bounds=bounds)
    else:
        answer = run_highs(cost, None, (), rows, zeros, bounds=bounds)
    if answer.status != 0 or answer.fun >= -CLEAR * (np.abs(cost) @ np.abs(answer.x)):
        return None
    v, w = np.split(_clean(answer.x), [len(one.b)])
    return left * v, right * w


def recession(one: NumpyProgram) -> Any | None:
    """``d`` with ``A d <= 0``, ``E d = 0``, (``d >= 0`` if ``z >= 0``) and ``c'd < 0``, or None."""
    A, _ = _unit_rows(one.A)
    E, _ = _unit_rows(one.E)
    bounds = (0 if one.nonnegative else -1, 1)
    answer = run_highs(one.c, A, np.zeros(len(one.b)), E, np.zeros(len(one.h)), bounds=bounds)
    if answer.status != 0 or answer.fun >= -CLEAR * (np.abs(one.c) @ np.abs(answer.x)):
        return None
    return _clean(answer.x)


def _clean(ray: Any) -> Any:
    """The ray without the entries that are only rounding."""
    return np.where(np.abs(ray) > DUST * np.abs(ray).max(), ray, 0.0)


def _unit_rows(matrix: Any) -> tuple[Any, Any]:
    """The matrix with rows of largest entry 1, and what each row was multiplied by."""
    if not matrix.shape[0]:
        return matrix, np.ones(0)
    size = abs(matrix).max(axis=1)
    size = np.asarray(size.todense() if issparse(size) else size).ravel()
    by = 1 / np.where(size > 0, size, 1)
    return (diags_array(by) @ matrix if issparse(matrix) else by[:, None] * matrix), by


def _beside(A: Any, E: Any) -> Any:
    """``[A' E']``."""
    if issparse(A) or issparse(E):
        return hstack([A.T, E.T]).tocsr()
    return np.concatenate([A, E]).T
