"""One program after the other by scipy's HiGHS: exact vertices, sparse matrices as they are."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linprog

from setpoint.layers.linear_program.program import Member, Program, Solution
from setpoint.layers.linear_program.scaling import equilibrate

TOLERANCE = 1e-9  # HiGHS accepts 1e-10 at the least; its default, 1e-7, shows in gradients
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
    options = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    answer = linprog(
        one.c,
        one.A if m else None,
        one.b if m else None,
        one.E if p else None,
        one.h if p else None,
        bounds=(0 if one.nonnegative else None, None),
        method="highs",
        options=options,
    )
    status = _STATUS.get(answer.status, "unsolved")
    if status != "optimal":
        nothing = np.zeros(n), np.zeros(m), np.zeros(p), np.zeros(n)
        return nothing, status, int(answer.nit)
    v = np.maximum(-answer.ineqlin.marginals, 0)  # rounding may leave -1e-17
    w = -answer.eqlin.marginals
    s = np.maximum(answer.lower.marginals, 0)
    return (answer.x, v, w, s), status, int(answer.nit)
