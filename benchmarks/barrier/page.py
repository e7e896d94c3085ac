"""Put the tables and plots of the stored rows into docs/barrier_results.md and docs/pareto.md.

python -m benchmarks.barrier.page
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.barrier import (
    ablation,
    auxiliary,
    consistency,
    fairness,
    front_pictures,
    lexicographic,
    plots,
    sparse,
    trajectory,
)
from benchmarks.barrier.front_rows import Rows
from benchmarks.common.pages import fill

DOCS = Path(__file__).resolve().parents[2] / "docs"
STUDIES = {
    "lexicographic": lexicographic,
    "consistency": consistency,
    "auxiliary": auxiliary,
    "ablation": ablation,
    "trajectory": trajectory,
}


def main() -> None:
    for name, study in STUDIES.items():
        rows = Rows(f"barrier_{name}", fresh=False).rows
        fill(DOCS / "barrier_results.md", name, study.table(rows), cells=24)
        plots.DRAWN[name](rows, DOCS / "images" / f"barrier_{name}.png")
    fronts()


def fronts() -> None:
    page = DOCS / "pareto.md"
    of_adult, of_codes = (Rows(f"barrier_{n}", fresh=False).rows for n in ("fairness", "sparse"))
    fill(page, "fairness", fairness.table(of_adult))
    fill(page, "sparse", sparse.table(of_codes))
    front_pictures.fairness(fairness.PICTURE, of_adult)
    sparse.draw(of_codes)


if __name__ == "__main__":
    main()
