"""Accuracy against the size of a sketch (Meng et al. 2021, figure 3c), published form and ours.

    python -m benchmarks.programs.sketching            # ten minutes
    python -m benchmarks.programs.sketching --quick    # one minute

Both form Newton's matrix from a sample of the rows. The published form samples the slope too
(equations 6 and 7); ours keeps the slope and the line search exact. On two kinds of programs:
random ones with many more rows than variables, and the pairs of 32 scores (hinges, no coupling: the
program of the AUC), where the published recipe converges. For each share of rows kept: the relative
error of the value, the cosine of the gradient by b with the exact one, Newton's steps, CPU time;
means and deviations over programs. Written to results/program_sketching.jsonl and, with matplotlib,
docs/images/program_sketching.svg.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.common import results
from setpoint.programs import linear_program

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "program_sketching.jsonl"
PICTURE = HERE.parents[1] / "docs" / "images" / "program_sketching.svg"
SHARES: tuple[float | str, ...] = ("auto", 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
D = torch.float64


def many_rows(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """500 normal rows, 20 variables."""
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(500, 20, generator=g, dtype=D)
    b = A @ torch.randn(20, generator=g, dtype=D) + torch.rand(500, generator=g, dtype=D)
    return -(torch.rand(500, generator=g, dtype=D) @ A), A, b


def pairs(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """z_ij >= 1 - (f_i - f_j) and z_ij >= 0 for 16 positives and 16 negatives."""
    g = torch.Generator().manual_seed(seed)
    f = torch.randn(32, generator=g, dtype=D)
    gaps = (f[:16, None] + 0.5 - f[None, 16:]).flatten()
    eye = torch.eye(256, dtype=D)
    b = torch.cat([gaps - 1, torch.zeros(256, dtype=D)])
    return torch.ones(256, dtype=D), torch.cat([-eye, -eye]), b


def measure(program: tuple[Tensor, Tensor, Tensor], size: int | str, form: str, seed: int) -> dict:
    """One program, one sketch: error of the value, cosine of the gradient, steps, seconds."""
    c, A, b = program
    exact_b = b.clone().requires_grad_()
    exact, _ = linear_program(c, A, exact_b, solver="highs", value_only=True)
    exact.backward()
    rough_b = b.clone().requires_grad_()
    random = torch.Generator().manual_seed(seed)
    options = {"unroll": True} if form == "published" else {"solver": "newton"}
    start = time.process_time()
    value, found = linear_program(
        c, A, rough_b, sketch=size, generator=random, value_only=True, **options
    )
    seconds = time.process_time() - start
    value.backward()
    cosine = torch.nn.functional.cosine_similarity(rough_b.grad, exact_b.grad, 0).item()
    return {
        "error": abs(value.item() - exact.item()) / abs(exact.item()),
        "cosine": cosine,
        "steps": found.found.iterations[0],
        "seconds": seconds,
        "by": found.solver[0],
    }


def run(count: int, end: float) -> list[dict]:
    """All cells, one row for each."""
    rows = []
    for kind, draw in (("many rows", many_rows), ("pairs", pairs)):
        for form in ("published", "ours"):
            for share in SHARES:
                cells = []
                for seed in range(count):
                    program = draw(seed)
                    if time.monotonic() < end:
                        size = share if share == "auto" else round(share * len(program[2]))
                        cells.append(measure(program, size, form, seed))
                if not cells:
                    continue
                row = {"kind": kind, "form": form, "share": share, "programs": len(cells)}
                for name in ("error", "cosine", "steps", "seconds"):
                    values = [c[name] for c in cells]
                    row[name] = statistics.mean(values)
                    row[f"{name}_sd"] = statistics.pstdev(values)
                row["by_newton"] = sum(c["by"] == "newton" for c in cells)
                rows.append(row)
                print(
                    f"{kind:10s} {form:10s} {_shown(share)}  error {row['error']:8.1e} "
                    f"(sd {row['error_sd']:.0e})  cosine {row['cosine']:6.3f} "
                    f"(sd {row['cosine_sd']:.3f})  steps {row['steps']:6.1f}  "
                    f"{1000 * row['seconds']:6.1f} ms",
                    flush=True,
                )
                results.rewrite(RESULTS, rows)
    return rows


def _shown(share: float | str) -> str:
    return share if isinstance(share, str) else f"{share:4.0%}"


def draw_picture(rows: list[dict]) -> None:
    """The figure: cosine of the gradient against the share of rows."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for axis, kind in zip(axes, ("many rows", "pairs"), strict=True):
        for form in ("published", "ours"):
            some = [
                r for r in rows if (r["kind"], r["form"]) == (kind, form) and r["share"] != "auto"
            ]
            spread = [r["cosine_sd"] for r in some]
            x, y = [r["share"] for r in some], [r["cosine"] for r in some]
            axis.errorbar(x, y, spread, label=form, marker="o", capsize=2)
        axis.set(title=kind, xlabel="share of rows in the sketch")
    axes[0].set_ylabel("cosine with the exact gradient")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(PICTURE)


def main() -> None:
    parser = results.parser(__doc__, quick="3 programs", minutes=15)
    parser.add_argument("--programs", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * options.minutes
    draw_picture(run(3 if options.quick else options.programs, end))


if __name__ == "__main__":
    main()
