"""Which solver for which batch: Newton for all members at once against HiGHS for one by one.

    python -m benchmarks.programs.solver_choice            # ten minutes
    python -m benchmarks.programs.solver_choice --quick    # one minute

Dense programs of several sizes, batches of 1 to 256; CPU time of the forward pass, the two solvers
alternating within a run, median of three. The rule in programs/layer.py is read off
this table. Written to results/solver_choice.jsonl.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.common import results
from setpoint.programs import linear_program

RESULTS = Path(__file__).parents[1] / "results" / "solver_choice.jsonl"
SIZES = ((10, 5), (60, 20), (200, 50), (500, 100))
BATCHES = (1, 4, 8, 16, 32, 64, 256)
ENTRIES = 1e6  # cells with more entries of A than this are left out


def draw(batch: int, m: int, n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Programs around a point with multipliers, so that each has a solution."""
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(batch, m, n, generator=g, dtype=torch.float64)
    z = torch.randn(batch, n, 1, generator=g, dtype=torch.float64)
    b = (A @ z)[..., 0] + torch.rand(batch, m, generator=g, dtype=torch.float64)
    return -(torch.rand(batch, 1, m, generator=g, dtype=torch.float64) @ A)[:, 0], A, b


def seconds(program: tuple[Tensor, Tensor, Tensor], solver: str) -> float:
    start = time.process_time()
    linear_program(*program, solver=solver)
    return time.process_time() - start


def main() -> None:
    parser = results.parser(__doc__, quick="the two small sizes only", minutes=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * options.minutes
    rows = []
    for solver in ("highs", "newton"):
        seconds(draw(2, 10, 5, 0), solver)  # imports, first calls
    for m, n in SIZES[:2] if options.quick else SIZES:
        for batch in BATCHES:
            if time.monotonic() > end or batch * m * n > ENTRIES:
                continue
            times: dict[str, list[float]] = {"highs": [], "newton": []}
            for repeat in range(3):
                program = draw(batch, m, n, repeat)
                for solver, some in times.items():
                    some.append(seconds(program, solver))
            row = {"rows": m, "variables": n, "batch": batch}
            for solver, some in times.items():
                row[solver] = statistics.median(some)
                row[f"{solver}_spread"] = max(some) - min(some)
            row["ratio"] = row["highs"] / row["newton"]
            rows.append(row)
            print(
                f"{m:4d} x {n:3d}  batch {batch:3d}   highs {1000 * row['highs']:7.1f} ms   "
                f"newton {1000 * row['newton']:7.1f} ms   {row['ratio']:5.2f} x",
                flush=True,
            )
            results.rewrite(RESULTS, rows)


if __name__ == "__main__":
    main()
