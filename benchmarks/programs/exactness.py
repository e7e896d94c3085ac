"""1,000 random linear programs of eight families against HiGHS: values, proofs and gradients.

    python -m benchmarks.programs.exactness            # half an hour on a slow core
    python -m benchmarks.programs.exactness --quick    # 80 programs, two minutes

For each program and each solver: the status, the relative error of the optimal value, whether the
proof of an infeasible or unbounded one holds, and, where the solution is unique and not degenerate,
the derivative along a random direction of A, b, E and h against central differences of HiGHS. A
badly scaled program is given to HiGHS in its good units, since in the others it errs. Rows
are appended to results/program_exactness.jsonl while it runs, and summed up at the end; a second
run goes on where the first one stopped.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import linprog

from benchmarks.common import results
from benchmarks.programs.families import FAMILIES, Drawn
from setpoint.programs import ProgramError, ProgramInfo, linear_program

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "program_exactness.jsonl"
SOLVERS = ("highs", "newton")
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
STEP = 1e-6  # of central differences, relative to the parameters


def highs(p: Drawn) -> tuple[str, float, np.ndarray]:
    """Scipy's answer: status, value, solution."""
    rows = {"A_ub": p.A, "b_ub": p.b} if len(p.b) else {}
    equal = {"A_eq": p.E, "b_eq": p.h} if len(p.h) else {}
    bounds = (0 if p.nonnegative else None, None)
    answer = linprog(p.c, **rows, **equal, bounds=bounds, method="highs", options=TIGHT)
    status = {0: "optimal", 2: "infeasible", 3: "unbounded"}.get(answer.status, "unsolved")
    return status, answer.fun, answer.x


def draw(seed: int) -> tuple[str, int, int, Drawn]:
    """The seed's program: families in turn, sizes log-uniform up to 500 rows, 200 variables."""
    rng = np.random.default_rng(seed)
    name = list(FAMILIES)[seed % len(FAMILIES)]
    m, n = (int(np.exp(rng.uniform(0, np.log(top + 0.99)))) for top in (500, 200))
    return name, m, n, FAMILIES[name](rng, m, n)


def solve(p: Drawn, solver: str) -> tuple[str, torch.Tensor, ProgramInfo | None, list]:
    """The layer's answer with its parameters, ready for a backward pass."""
    parts = [torch.from_numpy(np.array(x)).requires_grad_() for x in (p.c, p.A, p.b, p.E, p.h)]
    z, info = linear_program(*parts, nonnegative=p.nonnegative, solver=solver, strict=False)
    return info.status[0], z, info, parts


def holds(p: Drawn, status: str, info: ProgramInfo) -> bool:
    """Whether the ray proves what it says, to 1e-7 of its own terms."""
    ray = [x.numpy() for x in info.rays[0]]
    if status == "infeasible":
        v, w = ray
        left = p.A.T @ v + p.E.T @ w
        size = abs(p.A).T @ v + abs(p.E).T @ abs(w)
        near = left >= -1e-7 * size if p.nonnegative else abs(left) <= 1e-7 * size
        right = p.b @ v + p.h @ w
        return bool(near.all() and (v >= 0).all() and right < -1e-7 * (abs(p.b) @ v))
    (d,) = ray
    rows = p.A @ d <= 1e-7 * (abs(p.A) @ abs(d))
    equal = abs(p.E @ d) <= 1e-7 * (abs(p.E) @ abs(d))
    return bool(rows.all() and equal.all() and p.c @ d < -1e-7 * (abs(p.c) @ abs(d)))


def gradient_error(p: Drawn, z: torch.Tensor, parts: list, seed: int) -> float | None:
    """The derivative of a random mix of z along a random direction; None where a vertex jumps."""
    rng = np.random.default_rng(seed)
    g = rng.normal(size=len(p.c)) / np.maximum(abs(z.detach().numpy()), 1e-9)
    way = [rng.normal(size=x.shape) * abs(x) * STEP for x in (p.A, p.b, p.E, p.h)]
    for part in parts:
        part.grad = None
    z.backward(torch.from_numpy(g))
    ours = sum(
        float((part.grad * torch.from_numpy(d)).sum())
        for part, d in zip(parts[1:], way, strict=True)
    )
    ends = []
    for sign in (1, -1, 0.5, -0.5):
        A, b, E, h = (x + sign * d for x, d in zip((p.A, p.b, p.E, p.h), way, strict=True))
        status, _, x = highs(replace(p, A=A, b=b, E=E, h=h).well_scaled())
        if status != "optimal":
            return None
        x = x if p.units is None else x / p.units[2]
        ends.append(float(g @ x))
    wide, near = (ends[0] - ends[1]) / 2, ends[2] - ends[3]
    size = max(abs(near), abs(ours), STEP)
    if abs(wide - near) > 1e-6 * size:  # central differences disagree with themselves
        return None
    return abs(near - ours) / size


def row(seed: int) -> list[dict[str, object]]:
    """Everything measured for one program."""
    name, m, n, p = draw(seed)
    reference = highs(p.well_scaled())
    raw = highs(p)
    out: list[dict[str, object]] = []
    for solver in SOLVERS:
        start = time.process_time()
        try:
            status, z, info, parts = solve(p, solver)
        except ProgramError as error:
            out.append({"seed": seed, "family": name, "solver": solver, "error": str(error)})
            continue
        seconds = time.process_time() - start
        line = {"seed": seed, "family": name, "m": m, "n": n, "solver": solver, "status": status}
        line |= {"expected": p.status, "highs": raw[0], "by": info.solver[0], "seconds": seconds}
        if status == "optimal" and reference[0] == "optimal":
            size = max(abs(reference[1]), 1e-3 * float(abs(p.c) @ abs(info.solution.numpy())))
            line["error"] = abs(float(info.objective) - reference[1]) / (size or 1)
            if raw[0] == "optimal":
                line["highs_error"] = abs(raw[1] - reference[1]) / (size or 1)
            line["unique"], line["degenerate"] = bool(info.unique), bool(info.degenerate)
            if line["unique"] and not line["degenerate"]:
                line["gradient"] = gradient_error(p, z, parts, seed)
        elif status in ("infeasible", "unbounded"):
            line["proof"] = holds(p, status, info)
        out.append(line)
    return out


def summary(lines: list[dict[str, object]]) -> str:
    """One row for each family and solver; what missed a target is counted, not hidden."""
    head = "family solver programs right_status proven worst_error over_1e-9 highs_raw_worst "
    head += "unique&regular gradients worst_gradient over_1e-6 by_newton seconds"
    table = [head.split()]
    groups = defaultdict(list)
    for line in lines:
        groups[line["family"], line["solver"]].append(line)
    for (family, solver), some in groups.items():
        errors = [s["error"] for s in some if isinstance(s.get("error"), float)]
        raw = [s["highs_error"] for s in some if "highs_error" in s]
        grads = [s["gradient"] for s in some if s.get("gradient") is not None]
        regular = sum("gradient" in s for s in some)
        right = sum(s.get("status") == s.get("expected") for s in some)
        proofs = [s["proof"] for s in some if "proof" in s]
        cells = [family, solver, len(some), right, f"{sum(proofs)}/{len(proofs)}"]
        cells += [f"{max(errors, default=0):.0e}", sum(e > 1e-9 for e in errors)]
        cells += [f"{max(raw, default=0):.0e}", regular, len(grads)]
        cells += [f"{max(grads, default=0):.0e}", sum(g > 1e-6 for g in grads)]
        cells += [sum(s.get("by") == "newton" for s in some)]
        cells += [f"{sum(s.get('seconds', 0) for s in some):.1f}"]
        table.append([str(c) for c in cells])
    widths = [max(len(r[k]) for r in table) for k in range(len(table[0]))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in table)


def main() -> None:
    parser = results.parser(__doc__, "fresh", quick="80 programs", minutes=30)
    parser.add_argument("--programs", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = 80 if options.quick else options.programs
    end = time.monotonic() + 60 * options.minutes
    if options.fresh:
        RESULTS.unlink(missing_ok=True)
    lines = results.read(RESULTS)
    done = {line["seed"] for line in lines}
    for seed in (s for s in range(count) if s not in done):
        if time.monotonic() > end:
            print(f"stopped before program {seed}: run again to go on", file=sys.stderr)
            break
        new = list(row(seed))
        results.append(RESULTS, *new)
        lines += new
    print(summary([line for line in lines if line["seed"] < count]))


if __name__ == "__main__":
    main()
