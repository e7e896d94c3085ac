"""Alpha and beta of eq. (8), on Adult: unfairness subject to a bound on the loss, and after it.

    python -m benchmarks.barrier.ablation            # about two minutes of one idle core
    python -m benchmarks.barrier.ablation --quick    # a minute

Both are 1 by default. Alpha says how fast a broken bound is mended; beta limits what is asked for,
relative to the steepest descent of the loss, and alone rules the lexicographic case.
Exact gradients (all 5,000 rows) and minibatches of 256.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch.optim import SGD

from benchmarks.barrier.front_data import Adult
from benchmarks.barrier.front_rows import markdown
from benchmarks.barrier.study import Found, by_seed, conduct, options
from benchmarks.barrier.trajectory import network, rows_of, unfairness
from benchmarks.common.tables import mean_and_deviation
from setpoint import Barrier
from setpoint.solvers import at_most

RATE, LEVEL = 0.1, 0.33
VALUES = (0.1, 1.0, 10.0)
PAIRS = [*((value, 1.0) for value in VALUES), *((1.0, value) for value in VALUES if value != 1.0)]
BATCHES = (0, 256)  # 0: all rows
CASES = [
    *(
        {"method": "bound", "alpha": alpha, "beta": beta, "batch": batch}
        for alpha, beta in PAIRS
        for batch in BATCHES
    ),
    *(
        {"method": "lexicographic", "alpha": 1.0, "beta": beta, "batch": batch}
        for beta in VALUES
        for batch in BATCHES
    ),
]


def trial(
    method: str, alpha: float, beta: float, batch: int, seed: int, steps: int, synthetic: bool
) -> dict[str, Any]:
    data = rows_of(seed, synthetic)
    random = torch.Generator().manual_seed(seed)
    model = network(data.x)
    barrier = Barrier(model.parameters(), alpha=alpha, beta=beta)
    optimizer = SGD(model.parameters(), lr=RATE)
    inside = None
    for step in range(steps):
        x, y, sex = drawn(data, batch, random)
        scores = model(x)
        main, side = cross_entropy(scores, y), unfairness(scores, sex)
        optimizer.zero_grad()
        if method == "bound":
            barrier.backward(side, subject_to=[at_most(main, LEVEL)])
        else:
            barrier.backward(side, after=main)
        optimizer.step()
        if inside is None and main.item() <= LEVEL + 0.005:
            inside = step
    scores = model(data.x).detach()
    return {
        "loss": float(cross_entropy(scores, data.y)),
        "unfairness": float(unfairness(scores, data.sex)),
        "inside": inside,
        "report": {k: v for k, v in barrier.report().items() if isinstance(v, (int, float, str))},
    }


def drawn(data: Adult, batch: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """A minibatch, or all training rows."""
    if not batch:
        return data.x, data.y, data.sex
    rows = torch.randint(len(data.x), (batch,), generator=random)
    return data.x[rows], data.y[rows], data.sex[rows]


def table(rows: Found) -> str:
    lines = []
    for case in CASES:
        loss = by_seed(rows, "loss", **case)
        if not loss:
            continue
        side = by_seed(rows, "unfairness", **case)
        first = [step for step in by_seed(rows, "inside", **case).values() if step is not None]
        lines.append(
            [
                case["method"],
                f"{case['alpha']:g}" if case["method"] == "bound" else "",
                f"{case['beta']:g}",
                case["batch"] or "all",
                mean_and_deviation([*loss.values()], 4),
                mean_and_deviation([value - LEVEL for value in loss.values()], 4)
                if case["method"] == "bound"
                else "",
                mean_and_deviation([*side.values()], 4),
                f"{mean_and_deviation(first, 0)} ({len(first)} of {len(loss)})"
                if first
                else "never",
                len(loss),
            ]
        )
    header = ["what", "alpha", "beta", "batch", "loss", f"loss - {LEVEL}", "unfairness"]
    return markdown([*header, f"first step within 0.005 of {LEVEL}", "seeds"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    given = options(__doc__, 300, arguments)
    print(table(conduct("ablation", CASES, trial, given)))


if __name__ == "__main__":
    main()
