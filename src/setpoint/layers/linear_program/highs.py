"""One program after the other by scipy's HiGHS: exact vertices, sparse matrices as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import issparse

from setpoint.layers.linear_program.program import Member, Program, Solution
from setpoint.layers.linear_program.scaling import equilibrate

TOLERANCE = 1e-9  # HiGHS accepts 1e-10 at the least; its default, 1e-7, shows in gradients
LONG = 0.5  # a column with entries in this share of the rows is long
_STATUS = {0: "optimal", 2: "infeasible", 3: "unbounded"}


def solve_by_highs(program: Program) -> Solution:
    """Solve each member, scaled; status and multipliers are HiGHS's."""
    program, scales = equilibrate(program)
    found = [_solve(program.member(i)) for i in range(program.members)]
    sizes = (program.c.shape[1], program.b.shape[1], program.h.shape[1], program.c.shape[1])
    parts = []
    for k, size in enumerate(sizes):
        rows = np.array([f[0][k] for f in found]).reshape(len(found), size)
        parts.append(torch.from_numpy(rows).to(program.c.device))
    status = tuple(f[1] for f in found)
    z, v, w, s = parts
    steps = tuple(f[2] for f in found)
    return scales.back(Solution(z, v, w, s, status, ("highs",) * len(found), steps))


def _solve(one: Member) -> tuple[tuple[np.ndarray, ...], str, int]:
    m, p, n = len(one.b), len(one.h), len(one.c)
    long = _has_a_long_column(one)
    answer = _answer(one, presolve=not long)
    if answer.status != 0 and long:
        answer = _answer(one, presolve=True)
    status = _STATUS.get(answer.status, "unsolved")
    if status != "optimal":
        nothing = np.zeros(n), np.zeros(m), np.zeros(p), np.zeros(n)
        return nothing, status, int(answer.nit)
    v = np.maximum(-answer.ineqlin.marginals, 0)  # rounding may leave -1e-17
    w = -answer.eqlin.marginals
    s = np.maximum(answer.lower.marginals, 0)
    return (answer.x, v, w, s), status, int(answer.nit)


def _answer(one: Member, *, presolve: bool) -> Any:
    m, p = len(one.b), len(one.h)
    return linprog(
        one.c,
        one.A if m else None,
        one.b if m else None,
        one.E if p else None,
        one.h if p else None,
        bounds=(0 if one.nonnegative else None, None),
        method="highs",
        options={
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "presolve": presolve,
        },
    )


def _has_a_long_column(one: Member) -> bool:
    """Whether presolve would cost more than it saves.

    It walks through a column for each row it removes, so one variable in most rows (the scale of a
    ratio, say) makes it quadratic: a quarter of the time without it for the F score of 2,048. Where
    variables are free it is worth that, as it turns rows of one entry into bounds.
    """
    if not (issparse(one.A) and one.nonnegative and one.A.shape[0]):
        return False
    entries = np.bincount(one.A.indices, minlength=len(one.c))
    return bool(entries.max() >= LONG * len(one.b))
