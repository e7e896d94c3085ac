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

DOCS = Path(__file__).resolve().parents[2] / "docs"
STUDIES = {
    "lexicographic": lexicographic,
    "consistency": consistency,
    "auxiliary": auxiliary,
    "ablation": ablation,
    "trajectory": trajectory,
}


def filled(text: str, name: str, table: str) -> str:
    """``text`` with the table between the marks of this name."""
    start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


def main() -> None:
    page = DOCS / "barrier_results.md"
    text = page.read_text(encoding="utf-8")
    for name, study in STUDIES.items():
        rows = Rows(f"barrier_{name}", fresh=False).rows
        text = filled(text, name, study.table(rows))
        plots.DRAWN[name](rows, DOCS / "images" / f"barrier_{name}.png")
    page.write_text(text, encoding="utf-8")
    fronts()


def fronts() -> None:
    page = DOCS / "pareto.md"
    text = page.read_text(encoding="utf-8")
    of_adult, of_codes = (Rows(f"barrier_{n}", fresh=False).rows for n in ("fairness", "sparse"))
    text = filled(text, "fairness", fairness.table(of_adult))
    text = filled(text, "sparse", sparse.table(of_codes))
    front_pictures.fairness(fairness.PICTURE, of_adult)
    sparse.draw(of_codes)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
