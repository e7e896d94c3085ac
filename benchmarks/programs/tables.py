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
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from benchmarks.programs import tasks
from benchmarks.programs.criteria import RATE
from benchmarks.programs.judging import best_threshold, curve, judged, judged_classes
from benchmarks.programs.rows import opened, parser
from benchmarks.programs.training import predict, train

PARTS = ("auc", "classes", "f1", "epsilon", "adversarial", "rates")
BATCH = 64
AUC = ("cross-entropy", "weighted cross-entropy", "auc_loss", "auc_loss through linear_program",
       "ramp 0.01 of probabilities", "AUCM + PESG")  # fmt: skip
CLASSES = ("cross-entropy", "weighted cross-entropy", "AUC_mu", "one vs all")
F1 = ("cross-entropy", "weighted cross-entropy", "f_score_loss", "f_score_loss, warm start",
      "f_score_loss, threshold 0", "Implicit", "cvxpylayers")  # fmt: skip
EPSILON = (0.1, 0.01, 0.001)
FORMS = ("ramp {} of probabilities", "ramp {} of logits", "hinge {} of logits")
RATES = (0.01, 0.03, 0.1, 0.3)


def cells(part: str) -> list[dict[str, Any]]:
    """What is trained in one part, but for the seed."""
    if part == "auc":
        return _crossed(AUC, share=tasks.SHARES, set=tasks.SETS)
    if part == "classes":
        return _crossed(CLASSES, drop=tasks.DROPS, set=tuple(tasks.GROUPS))
    if part in ("f1", "adversarial"):
        methods = F1 if part == "f1" else ("AP-Perf",)
        return _crossed(methods, set=tasks.SETS, share=(0.50,))
    if part == "epsilon":
        methods = [form.format(width) for width in EPSILON for form in FORMS]
        return _crossed(methods, set=("catdog",), share=(0.91,))
    tried = [name for name in AUC if "linear_program" not in name]
    return _crossed(tried, rate=RATES, set=("catdog",), share=(0.91,))


def _crossed(methods: Sequence[str], **choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every method with every choice; the first choice varies slowest."""
    crossed = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    return [{**choice, "method": method} for choice in crossed for method in methods]


def waves(parts: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A quarter of every part, then the next: a run that is stopped has seen all of them."""
    for quarter in range(4):
        for part in parts:
            whole = cells(part)
            first, last = (round(q * len(whole) / 4) for q in (quarter, quarter + 1))
            yield from ((part, cell) for cell in whole[first:last])


def run(cell: dict[str, Any], seeds: list[int], steps: int, batch: int) -> list[dict[str, Any]]:
    """Train and judge one cell: an outcome for each seed."""
    three = "drop" in cell
    make, amount = (tasks.three_classes, "drop") if three else (tasks.binary, "share")
    given = [make(cell["set"], cell[amount], seed) for seed in seeds]
    model, spent = train(
        given, seeds, cell["method"], steps=steps, batch=batch, rate=cell.get("rate", RATE)
    )
    outcomes = []
    seen = predict(model, [task.training_sample() for task in given]).numpy()
    for scores, task, trained in zip(predict(model, given).numpy(), given, seen, strict=True):
        labels = task.y_test.numpy()
        if three:
            found = judged_classes(scores, labels)
        else:
            best = best_threshold(trained, task.training_sample().y_test.numpy())
            found = judged(scores, labels) | {
                f"{k}_tuned": v for k, v in judged(scores, labels, best).items() if k != "auc"
            }
        if three and cell["drop"] == 0.9:  # the paper's Fig. 2
            found["curves"] = [curve(scores[:, k], labels == k) for k in range(3)]
        outcomes.append({**found, **spent})
    return outcomes


def main() -> None:
    options = arguments()
    rows = opened(options, "training")
    until = time.monotonic() + 60 * options.minutes
    for part, cell in waves(options.only):
        full = [{"part": part, **cell, "seed": seed} for seed in range(options.seeds)]
        missing = [one["seed"] for one in full if not rows.done(one)]
        if not missing:
            continue
        if time.monotonic() > until:
            print("out of time; run again to go on")
            return
        steps, batch = plan(part, options.steps)
        for seed, found in zip(missing, run(cell, missing, steps, batch), strict=True):
            rows.add(full[seed], steps=steps, **found)


def plan(part: str, steps: int) -> tuple[int, int]:
    """Steps and batch of a part: AP-Perf takes a tenth of a second for a batch of 32."""
    return (round(steps / 3), BATCH // 2) if part == "adversarial" else (steps, BATCH)


def arguments() -> argparse.Namespace:
    asked = parser(__doc__)
    asked.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--steps", type=int, default=150)
    asked.add_argument("--minutes", type=float, default=60.0, help="start no run after so many")
    options = asked.parse_args()
    if options.quick:
        options.seeds, options.steps, options.minutes = 1, min(options.steps, 30), 1.5
    return options


if __name__ == "__main__":
    main()
