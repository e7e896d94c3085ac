"""Training: the paper's Tables 1 and 2, its F1 section and its table over epsilon, on small images.

    python -m benchmarks.programs.tables                    # everything, 20 minutes of CPU
    python -m benchmarks.programs.tables --only auc --seeds 2
    python -m benchmarks.programs.tables --minutes 20       # so many of them; the next run goes on
    python -m benchmarks.programs.tables --quick            # two minutes: one seed, few cells

Writes benchmarks/results/programs_training.jsonl run by run; runs that are there are not repeated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.programs import tasks
from benchmarks.programs.criteria import RATE
from benchmarks.programs.judging import curve, judged, judged_classes
from benchmarks.programs.rows import RESULTS, Rows, facts
from benchmarks.programs.training import predict, train

PARTS = ("auc", "classes", "f1", "epsilon", "adversarial", "rates")
BATCH = 32  # as in the paper's code
SHORTER = {"adversarial": 0.25}  # AP-Perf takes a tenth of a second a step
AUC = ("cross-entropy", "weighted cross-entropy", "auc_loss", "ramp 0.01 of probabilities",
       "AUCM + PESG")  # fmt: skip
CLASSES = ("cross-entropy", "weighted cross-entropy", "AUC_mu", "one vs all")
F1 = ("cross-entropy", "weighted cross-entropy", "f_score_loss", "cvxpylayers")
EPSILON = (0.1, 0.01, 0.001)
FORMS = ("ramp {} of probabilities", "ramp {} of logits", "hinge {} of logits")
RATES = (0.03, 0.1, 0.3, 1.0)


def cells(part: str, quick: bool) -> Iterator[dict[str, Any]]:
    """What is trained in one part, but for the seed."""
    sets = ("catdog",) if quick else tasks.SETS
    if part == "auc":
        for share in (0.91,) if quick else tasks.SHARES:
            for name in sets:
                yield from ({"set": name, "share": share, "method": m} for m in AUC)
    elif part == "classes":
        for drop in (0.9,) if quick else tasks.DROPS:
            for name in ("cifar100",) if quick else tasks.GROUPS:
                yield from ({"set": name, "drop": drop, "method": m} for m in CLASSES)
    elif part in ("f1", "adversarial"):
        for name in sets:
            methods = F1 if part == "f1" else ("AP-Perf",)
            yield from ({"set": name, "share": 0.50, "method": m} for m in methods)
    elif part == "epsilon":
        for form in FORMS:
            for width in EPSILON:
                yield {"set": "catdog", "share": 0.91, "method": form.format(width)}
    else:
        for rate in RATES:
            for m in AUC:
                yield {"set": "catdog", "share": 0.91, "method": m, "rate": rate}


def run(cell: dict[str, Any], seeds: list[int], steps: int, batch: int) -> list[dict[str, Any]]:
    """Train and judge one cell: an outcome for each seed."""
    three = "drop" in cell
    make, amount = (tasks.three_classes, "drop") if three else (tasks.binary, "share")
    given = [make(cell["set"], cell[amount], seed) for seed in seeds]
    model, spent = train(
        given, seeds, cell["method"], steps=steps, batch=batch, rate=cell.get("rate", RATE)
    )
    outcomes = []
    for scores, task in zip(predict(model, given).numpy(), given, strict=True):
        labels = task.y_test.numpy()
        found = judged_classes(scores, labels) if three else judged(scores, labels)
        if three and cell["drop"] == 0.9:  # the paper's Fig. 2
            found["curves"] = [curve(scores[:, k], labels == k) for k in range(3)]
        outcomes.append({**found, **spent})
    return outcomes


def main() -> None:
    options = arguments()
    torch.set_num_threads(1)
    rows = Rows(options.out, options.fresh)
    rows.note(facts=facts(), steps=options.steps)
    until = time.monotonic() + 60 * options.minutes
    for part in options.only:
        steps = round(options.steps * SHORTER.get(part, 1.0))
        for cell in cells(part, options.quick):
            full = [{"part": part, **cell, "seed": seed} for seed in range(options.seeds)]
            missing = [one["seed"] for one in full if not rows.done(one)]
            if not missing:
                continue
            if time.monotonic() > until:
                print("out of time; run again to go on")
                return
            for seed, found in zip(missing, run(cell, missing, steps, BATCH), strict=True):
                rows.add(full[seed], steps=steps, **found)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one seed, few cells, 60 steps")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no run after so many")
    parser.add_argument("--out", type=Path, default=RESULTS / "programs_training.jsonl")
    parser.add_argument("--fresh", action="store_true", help="start the file anew")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.steps, options.minutes = 1, min(options.steps, 60), 1.8
        options.out = options.out.with_name("programs_training_quick.jsonl")
    return options


if __name__ == "__main__":
    main()
