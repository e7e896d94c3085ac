"""One program after the other by scipy's HiGHS: exact vertices, sparse matrices as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import issparse

from setpoint.programs.standard_form import NumpyProgram, ProgramBatch, SolutionBatch, equilibrate

HIGHS_TOLERANCE = 1e-9  # HiGHS accepts 1e-10 at the least; its default, 1e-7, shows in gradients
LONG_COLUMN = 0.5  # share of the rows with an entry in it
_STATUS = {0: "optimal", 2: "infeasible", 3: "unbounded"}


def solve_by_highs(program: ProgramBatch) -> SolutionBatch:
    """Solve each member, scaled; status and multipliers are HiGHS's."""
    program, scales = equilibrate(program)
    found = [_solve_one(program.member(i)) for i in range(program.members)]
    parts = []
    for k, like in enumerate((program.c, program.b, program.h, program.c)):
        rows = np.array([numbers[k] for numbers, _, _ in found]).reshape(like.shape)
        parts.append(torch.from_numpy(rows).to(like.device))
    status, steps = tuple(word for _, word, _ in found), tuple(count for _, _, count in found)
    z, v, w, s = parts
    return scales.unscale(SolutionBatch(z, v, w, s, status, ("highs",) * len(found), steps))


def _solve_one(one: NumpyProgram) -> tuple[tuple[np.ndarray, ...], str, int]:
    """Solution and multipliers (zeros if there is none), status, iterations."""
    long = _has_a_long_column(one)
    answer = _run_highs(one, presolve=not long)
    if answer.status != 0 and long:
        answer = _run_highs(one, presolve=True)
    status = _STATUS.get(answer.status, "unsolved")
    if status != "optimal":
        parts = tuple(np.zeros(len(x)) for x in (one.c, one.b, one.h, one.c))
        return parts, status, int(answer.nit)
    v = np.maximum(-answer.ineqlin.marginals, 0)  # rounding may leave -1e-17
    w = -answer.eqlin.marginals
    s = np.maximum(answer.lower.marginals, 0)
    return (answer.x, v, w, s), status, int(answer.nit)


def _run_highs(one: NumpyProgram, *, presolve: bool) -> OptimizeResult:
    options = {
        "primal_feasibility_tolerance": HIGHS_TOLERANCE,
        "dual_feasibility_tolerance": HIGHS_TOLERANCE,
        "presolve": presolve,
    }
    bounds = (0 if one.nonnegative else None, None)
    return run_highs(one.c, one.A, one.b, one.E, one.h, bounds=bounds, options=options)


def run_highs(
    c: Any, A: Any, b: Any, E: Any, h: Any, *, bounds: Any, options: Any = None
) -> OptimizeResult:
    """Scipy's result for one program, whose matrices may have no rows."""
    return linprog(
        c,
        A if len(b) else None,
        b if len(b) else None,
        E if len(h) else None,
        h if len(h) else None,
        bounds=bounds,
        method="highs",
        options=options,
    )


def _has_a_long_column(one: NumpyProgram) -> bool:
    """Whether presolve would cost more than it saves.

    Presolve scans a column for each row it removes, so one variable in most rows (the scale of a
    ratio, say) makes it quadratic: the F score of 2,048 takes a quarter of the time without it.
    Where variables are free it still pays, as it turns rows of one entry into bounds.
    """
    if not (issparse(one.A) and one.nonnegative and one.A.shape[0]):
        return False
    entries = np.bincount(one.A.indices, minlength=len(one.c))
    return bool(entries.max() >= LONG_COLUMN * len(one.b))
