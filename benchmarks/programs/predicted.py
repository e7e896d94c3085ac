"""The paper's Fig. 3a: the F1 that a loss predicts for a batch against the F1 that it has.

    python -m benchmarks.programs.predicted               # a minute or two
    python -m benchmarks.programs.predicted --quick

Networks trained with cross-entropy for more and more steps score batches of 32 test images. For
each batch: the true F1 of ``score > 0``; the bound of the F-score program (one minus
``f_score_loss``); AP-Perf's estimate as reported; and the same game solved by our layer.
Writes benchmarks/results/programs_predicted.jsonl.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.programs import tasks
from benchmarks.programs.adversary import game_loss
from benchmarks.programs.rows import opened, parser
from benchmarks.programs.training import predict, train
from setpoint.losses import f_score_loss

STEPS = (5, 20, 80, 300)
BATCH = 32


def batches(name: str, steps: int, count: int) -> list[tuple[Tensor, Tensor]]:
    """Scores and labels of test batches, by a network trained for so many steps."""
    task = tasks.binary(name, 0.5, 0)
    model, _ = train([task], [0], "cross-entropy", steps=steps, batch=BATCH)
    order = torch.randperm(len(task.y_test), generator=torch.Generator().manual_seed(0))
    rows = order[: count * BATCH]
    scores = predict(model, [task._replace(x_test=task.x_test[rows])])[0]
    return list(zip(scores.split(BATCH), task.y_test[rows].split(BATCH), strict=True))


def predictions(scores: Tensor, labels: Tensor, peer: bool) -> dict[str, Any]:
    """The true F1 and what is said about it."""
    said = scores > 0
    true = 2 * float((said & (labels > 0)).sum()) / max(1, int(said.sum() + labels.sum()))
    program = 1 - float(f_score_loss(scores, labels, threshold=0.0, lift=False))
    found = {"true": true, "program": program, "game": -float(game_loss(scores, labels))}
    if peer:
        from benchmarks.programs.peers.adversarial import build

        found["AP-Perf"] = -float(build("f1", labels)(scores))
    return found


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--batches", type=int, default=6)
    asked.add_argument("--without-peer", action="store_true", help="AP-Perf is not installed")
    options = asked.parse_args()
    rows = opened(options, "predicted")
    for name in ("cifar10",) if options.quick else ("catdog", "cifar10"):
        for steps in STEPS[::2] if options.quick else STEPS:
            count = 2 if options.quick else options.batches
            for i, (scores, labels) in enumerate(batches(name, steps, count)):
                cell = {"set": name, "steps": steps, "batch": i}
                if not rows.done(cell):
                    rows.add(cell, **predictions(scores, labels, not options.without_peer))


if __name__ == "__main__":
    main()
