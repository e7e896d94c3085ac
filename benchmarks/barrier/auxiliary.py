"""Table 3 of the paper: an auxiliary head in the middle of the network, after the main head.

    python -m benchmarks.barrier.auxiliary            # about three minutes of one idle core
    python -m benchmarks.barrier.auxiliary --quick    # one minute

A small network on 4,000 faces of CelebA, judged on 4,000 others. The main head stands on the whole
body, the auxiliary head on two of its three blocks. In the first task both heads learn the
same attribute, as in the paper; in the second the auxiliary head learns another one.
The linear combination is ``main + auxiliary / weight`` with the paper's five weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from benchmarks.barrier import pictures, rules
from benchmarks.barrier.front_rows import markdown
from benchmarks.barrier.pictures import WIDTHS
from benchmarks.barrier.study import Found, by_seed, conduct, descend, options, paired
from benchmarks.common.networks import SmallCNN, flipped
from benchmarks.common.tables import mean_and_deviation

BATCH, TRAIN = 64, 4000
TASKS = (
    ("Smiling", "Smiling"),
    ("Wearing_Lipstick", "Heavy_Makeup"),
)
WEIGHTS = {"10": 10.0, "5": 5.0, "10/3": 10 / 3, "2.5": 2.5, "2": 2.0}
GRID = tuple(f"weight {name}" for name in WEIGHTS)
METHODS = ("main head only", *GRID, "lexicographic", "printed")
CASES = [{"main": a, "auxiliary": b, "method": m} for a, b in TASKS for m in METHODS]


class TwoHeads(nn.Module):
    """The small network with one more head on the first two of its three blocks."""

    def __init__(self) -> None:
        super().__init__()
        blocks = list(SmallCNN(1, WIDTHS).children())
        self.first, self.last = nn.Sequential(*blocks[:2]), nn.Sequential(*blocks[2:])
        self.auxiliary = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[1], 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """``[n, 2]``: main and auxiliary logits."""
        shared = self.first(x)
        return torch.cat([self.last(shared), self.auxiliary(shared)], 1)


def combination(method: str, model: nn.Module) -> rules.Rule:
    if method == "main head only":
        return rules.main_only
    if method in GRID:
        return rules.weighted(1 / WEIGHTS[method.removeprefix("weight ")])
    return rules.named(method, model.parameters())


def parts_of(main: str, auxiliary: str, seed: int, synthetic: bool) -> pictures.Parts:
    if synthetic:
        return pictures.cut(*pictures.made_up(classes=2, outputs=(2,)), 64, 0)
    found = pictures.halved("celeba")
    labels = torch.stack([found.column(main), found.column(auxiliary)], 1)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    order = order[: 2 * TRAIN]
    return pictures.cut(found.train[order], labels[order], TRAIN, 0)


def trial(
    main: str, auxiliary: str, method: str, seed: int, steps: int, synthetic: bool
) -> dict[str, Any]:
    parts = parts_of(main, auxiliary, seed, synthetic)
    random = torch.Generator().manual_seed(seed)
    model = TwoHeads()

    def losses() -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(parts.x), (BATCH,), generator=random)
        outputs = model(flipped(parts.x[rows], random))
        labels = parts.y[rows].float()
        return cross_entropy(outputs[:, 0], labels[:, 0]), cross_entropy(
            outputs[:, 1], labels[:, 1]
        )

    weight = descend(model, losses, combination(method, model), steps, rate=0.05)
    right = ((pictures.outputs_of(model, parts.x_test) > 0) == parts.y_test.bool()).double()
    trained = pictures.outputs_of(model, parts.x)
    return {
        "main_test": 100 * float(right[:, 0].mean()),
        "auxiliary_test": 100 * float(right[:, 1].mean()),
        "main_loss": float(cross_entropy(trained[:, 0], parts.y[:, 0].float())),
        "auxiliary_loss": float(cross_entropy(trained[:, 1], parts.y[:, 1].float())),
        "weight": min(weight, 1e9),
    }


def table(rows: Found) -> str:
    lines = []
    for main, auxiliary in TASKS:
        task = {"main": main, "auxiliary": auxiliary}
        tests = {m: by_seed(rows, "main_test", method=m, **task) for m in METHODS}
        tests = {method: found for method, found in tests.items() if found}
        if not tests:
            continue
        best = max((m for m in tests if m in GRID), key=lambda m: fmean(tests[m].values()))
        for method, found in tests.items():
            other = by_seed(rows, "auxiliary_test", method=method, **task)
            lines.append(
                [
                    main if main == auxiliary else f"{main}, {auxiliary}",
                    f"**{method}** (best of the grid)" if method == best else method,
                    mean_and_deviation([*found.values()]),
                    "" if method == best else paired(found, tests[best]),
                    mean_and_deviation([*other.values()]),
                    mean_and_deviation(
                        [*by_seed(rows, "main_loss", method=method, **task).values()], 3
                    ),
                    len(found),
                ]
            )
    header = ["task", "method", "main head, %", "to the best of the grid", "auxiliary head, %"]
    return markdown([*header, "train loss, main", "seeds"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    given = options(__doc__, 300, arguments)
    print(table(conduct("auxiliary", CASES, trial, given)))


if __name__ == "__main__":
    main()
