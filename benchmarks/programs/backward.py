"""What a backward pass costs, as a share of its forward pass, for every mode of the layer.

    python -m benchmarks.programs.backward               # a minute
    python -m benchmarks.programs.backward --quick       # one round

Three programs: the pairs of 64 scores (AUC, sparse), the F score of 256 scores (sparse), and 64
random dense programs of 60 x 20. Gradients go to all parts of the program, to the costs alone where
a mode replaces that gradient. Writes benchmarks/results/programs_backward.jsonl.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.programs.instances import draw, random_batch
from benchmarks.programs.measure import turns
from benchmarks.programs.rows import opened, parser
from setpoint.losses import auc_loss, f_score_loss
from setpoint.programs import Unrolled, as_program, linear_program

MODES: dict[str, dict[str, Any]] = {
    "solution": {},
    "value_only": {"value_only": True},
    "solution, newton": {"solver": "newton"},
    "value_only, newton": {"solver": "newton", "value_only": True},
    "blackbox": {"cost_gradient": "blackbox"},
    "perturbed, 16 samples": {"cost_gradient": "perturbed"},
    "smoothed": {"cost_gradient": "smoothed"},
    "published, active rows": {"unroll": True},
    "published, through the steps": {"unroll": Unrolled(result="iterate")},
}
LOSSES: dict[str, tuple[int, Callable[..., Tensor], dict[str, Any]]] = {
    "AUC, 64 scores": (64, auc_loss, {}),
    "F score, 256 scores": (256, f_score_loss, {"threshold": 0.0, "lift": False}),
}
BATCH = "64 dense programs"


def metric(name: str, mode: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Scores, and the loss of a metric's program in one mode (dense where a mode asks for it)."""
    n, loss, fixed = LOSSES[name]
    scores, labels = draw(n)
    options = MODES[mode]

    def call(x: Tensor) -> Tensor:
        c, A, b, E, h, nonnegative = as_program(loss, x, labels, **fixed)[:6]
        if "unroll" in options:
            A, E = A.to_dense(), None if E is None else E.to_dense()
        if "cost_gradient" in options:
            c = c.detach() + 0 * x.sum()
        return linear_program(c, A, b, E, h, nonnegative, **options)[0].sum()

    return scores, call


def batch(mode: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Random dense programs, each differentiated by its right sides (its costs)."""
    c, A, b = random_batch(64)
    options = MODES[mode]
    if "cost_gradient" in options:
        box = torch.eye(20, dtype=A.dtype).repeat(64, 1, 1)  # other costs need a bounded program
        A, b = torch.cat([A, box, -box], 1), torch.cat([b, torch.full((64, 40), 50.0)], 1)
        return c, lambda x: linear_program(x, A, b, **options)[0].sum()
    return b, lambda x: linear_program(c, A, x, **options)[0].sum()


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    options = asked.parse_args()
    rows = opened(options, "backward")
    for name in (*LOSSES, BATCH):
        for mode in MODES:
            cell = {"program": name, "mode": mode}
            if rows.done(cell):
                continue
            x, call = batch(mode) if name == BATCH else metric(name, mode)
            lost: dict[str, str] = {}
            rounds = 1 if options.quick else options.rounds
            found = list(turns({mode: call}, x, rounds, 2.0, lost))
            if lost:
                rows.add(cell, skipped=lost[mode])
                continue
            forward, backward = (
                statistics.median(getattr(turn, side) for turn in found)
                for side in ("forward", "backward")
            )
            rows.add(cell, forward_s=forward, backward_s=backward, share=backward / forward)


if __name__ == "__main__":
    main()
