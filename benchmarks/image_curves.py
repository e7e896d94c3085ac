"""ICO's Figure 1: ROC curves of two attributes of CelebA, whole and in the range trained for.

    python -m benchmarks image_curves --quick     # a minute, to a scratch folder
    python -m benchmarks image_curves             # ten minutes
    python -m benchmarks image_curves --docs      # docs/images/image_curves.svg from the rows

Methods are trained and chosen as in image_tables: three rates, stopped on validation by the area.
"""

from pathlib import Path

import numpy as np
from sklearn.metrics import roc_curve

from benchmarks.common import results
from benchmarks.common.scratch import scratch
from benchmarks.image_tables import STEPS, judged
from benchmarks.peers.faces import fold
from docs.style import BLUE, GREY, IMAGES, OURS, USUAL, plt, save

RESULTS = Path(__file__).parent / "results" / "image_curves.jsonl"
PANELS = (("celeba/Wearing_Lipstick", 0.2), ("celeba/Black_Hair", 0.05))
"""Attribute and false positive rate, as in the paper."""
METHODS = {"cross-entropy": GREY, "tfco": BLUE, "ico": USUAL, "Implicit": OURS}
GRID = np.concatenate([np.linspace(0, 0.2, 201), np.linspace(0.21, 1, 80)])
"""False positive rates at which curves are kept."""


def run(out: Path, steps: int, quick: bool) -> None:
    """Every curve that is not there yet."""
    known = {(row["task"], row["method"]) for row in results.read(out)}
    for task, rate in PANELS[:1] if quick else PANELS:
        data, goal = fold(task, 0), f"ROC-AUC to {rate:.0%}"
        for name in METHODS:
            if (task, name) in known:
                continue
            judge, _ = judged(name, "2k", data, [goal], 0, steps)
            false, true, _ = roc_curve(judge.test[1].numpy(), judge.scores[goal].numpy())
            kept = [round(float(tpr), 4) for tpr in np.interp(GRID, false, true)]
            row = {"task": task, "fpr": rate, "method": name, "steps": steps}
            results.append(out, {**row, **judge.best[goal], "tpr": kept})
            print(task, name, f"{judge.best[goal]['test']:.2f}", flush=True)


def text(rows: list[results.Row]) -> str:
    """The areas of the curves, one line each."""
    lines = (f"{r['task']}, to FPR {r['fpr']:.0%}, {r['method']}: {r['test']:.2f}" for r in rows)
    return "\n".join(lines) or "No rows yet."


def draw(rows: list[results.Row], folder: Path) -> None:
    """For each attribute the whole curve, and the range that was trained for."""
    tasks = list(dict.fromkeys((row["task"], row["fpr"]) for row in rows))
    figure, axes = plt.subplots(1, 2 * len(tasks), figsize=(4 * len(tasks) + 4, 3.4), squeeze=False)
    for place, (task, rate) in enumerate(tasks):
        whole, corner = axes[0, 2 * place : 2 * place + 2]
        for row in (row for row in rows if row["task"] == task):
            for axis in (whole, corner):
                axis.plot(GRID, row["tpr"], color=METHODS[row["method"]], label=row["method"])
        inside = [np.interp([0.0, rate], GRID, r["tpr"]) for r in rows if r["task"] == task]
        corner.set(xlim=(0, rate), ylim=(np.min(inside), np.max(inside)))
        title = task.partition("/")[2].replace("_", " ")
        whole.set(title=title, xlabel="false positive rate", ylabel="true positive rate")
        corner.set(title=f"up to {rate:.0%}", xlabel="false positive rate")
        whole.axvspan(0, rate, color=GREY, alpha=0.2)
    axes[0, 0].legend(loc="lower right", fontsize=9)
    figure.tight_layout()
    save(figure, "image_curves", folder)


def main() -> None:
    chosen = results.parser(__doc__, "table", "docs", "out", quick="one attribute").parse_args()
    out = chosen.out or (scratch("image_curves") if chosen.quick else RESULTS)
    if not (chosen.table or chosen.docs):
        run(out, 4 if chosen.quick else STEPS, chosen.quick)
    rows = results.read(out)
    print(text(rows))
    if chosen.quick or chosen.docs:
        draw(rows, out.parent if chosen.quick else IMAGES)


if __name__ == "__main__":
    main()
