"""Write tables and plots of docs/programs.md from benchmarks/results/programs_*.jsonl.

python -m benchmarks.programs.page          # the text between the tables stays as it is
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.common.folder import ROOT
from benchmarks.common.pages import fill
from benchmarks.programs import pictures, report_speed, report_training
from benchmarks.programs.report_speed import Row
from benchmarks.programs.rows import RESULTS, read
from benchmarks.programs.targets import verdicts

PAGE = ROOT / "docs" / "programs.md"
IMAGES = ROOT / "docs" / "images"
FILES = ("speed", "batches", "large", "training", "game", "predicted", "backward")


def main() -> None:
    found = {
        name: [row for row in read(RESULTS / f"programs_{name}.jsonl") if "cell" in row]
        for name in FILES
    }
    for mark, block in blocks(found).items():
        fill(PAGE, mark, block, cells=24)
    drawn: tuple[tuple[str, Callable[[list[Row], Path], None], str], ...] = (
        ("speed", pictures.speed, "programs_speed.png"),
        ("training", pictures.curves, "programs_roc.png"),
        ("predicted", pictures.predicted, "programs_predicted.png"),
    )
    for name, draw, file in drawn:
        if found[name]:
            draw(found[name], IMAGES / file)
    print(f"written to {PAGE}")


def blocks(found: dict[str, list[Row]]) -> dict[str, str]:
    """What stands between each pair of marks."""
    training = found["training"]
    part = {p: report_training.of(training, p) for p in ("auc", "classes", "epsilon", "rates")}
    f1 = report_training.of(training, "f1") + report_training.of(training, "adversarial")
    return {
        "targets": verdicts(found),
        "auc": report_speed.speed(found["speed"], "auc"),
        "f1": report_speed.speed(found["speed"], "f1"),
        "memory": report_speed.memory(found["speed"]),
        "batches": report_speed.batches(found["batches"]),
        "large": report_speed.large(found["large"]),
        "table 1": report_training.grid(part["auc"], "auc", "share"),
        "table 2 ova": report_training.grid(part["classes"], "ova", "drop"),
        "table 2 mu": report_training.grid(part["classes"], "mu", "drop"),
        "table f1": report_training.f1(f1),
        "table epsilon": report_training.epsilon(part["epsilon"]),
        "table rates": report_training.rates(part["rates"]),
        "predicted": report_training.predicted(found["predicted"]),
        "game": report_speed.game(found["game"]),
        "backward": report_speed.backward(found["backward"]),
    }


if __name__ == "__main__":
    main()
