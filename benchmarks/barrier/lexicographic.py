"""Table 1 of the paper: the length of the weights after the loss, against a grid of weight decays.

    python -m benchmarks.barrier.lexicographic            # about five minutes of one idle core
    python -m benchmarks.barrier.lexicographic --quick    # one minute

A small network learns CIFAR-10 from 2,000 images. Side losses: the squared length of all weights,
as in the paper, and its logarithm: the same optimum (a monotone map), but without units.
The grid's best row is the best on the test images; "chosen" is picked per seed on 2,000 others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.barrier import pictures, rules
from benchmarks.barrier.front_rows import markdown
from benchmarks.barrier.pictures import WIDTHS
from benchmarks.barrier.study import Found, by_seed, conduct, descend, options, paired
from benchmarks.common.networks import SmallCNN, flipped
from benchmarks.common.tables import mean_and_deviation

BATCH = 64
DECAYS = (0.0, 1e-3, 3e-3, 1e-2, 3e-2)
GRID = tuple(f"weight decay {decay:g}" for decay in DECAYS)
LEXICOGRAPHIC = (
    "lexicographic, length",
    "lexicographic, log length",
    "printed, length",
    "printed, log length",
)
RATES = {"batch norm": 0.05, "plain": 0.03}
CASES = [{"network": n, "method": m} for n in RATES for m in (*GRID, *LEXICOGRAPHIC)]


def length(model: nn.Module) -> Tensor:
    """The squared length of all weights."""
    return torch.stack([p.square().sum() for p in model.parameters()]).sum()


def combination(method: str, model: nn.Module) -> rules.Rule:
    kind, _, value = method.rpartition(" ")
    if kind == "weight decay":
        return rules.weighted(float(value) / 2)
    return rules.named(method, model.parameters())


def trial(network: str, method: str, seed: int, steps: int, synthetic: bool) -> dict[str, Any]:
    parts = (
        pictures.cut(*pictures.made_up(), 32, 32)
        if synthetic
        else pictures.cifar10(seed, train=2000, validation=2000)
    )
    random = torch.Generator().manual_seed(seed)
    model = SmallCNN(10, WIDTHS) if network == "batch norm" else pictures.plain_cnn(10)

    def losses() -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(parts.x), (BATCH,), generator=random)
        main = cross_entropy(model(flipped(parts.x[rows], random)), parts.y[rows])
        side = length(model)
        return main, side.log() if method.endswith("log length") else side

    weight = descend(model, losses, combination(method, model), steps, RATES[network])
    return {
        "test": pictures.accuracy(model, parts.x_test, parts.y_test),
        "validation": pictures.accuracy(model, parts.x_validation, parts.y_validation),
        "train_loss": float(cross_entropy(pictures.outputs_of(model, parts.x), parts.y)),
        "length": length(model).sqrt().item(),
        "weight": min(weight, 1e9),
    }


def chosen(rows: Found, network: str) -> dict[int, float]:
    """Test accuracy of the weight decay that validates best, by seed; whole grids only."""
    grid = [r for r in rows if r["network"] == network and r["method"] in GRID]
    counts = Counter(r["seed"] for r in grid)
    grid = [r for r in grid if counts[r["seed"]] == max(counts.values())]
    best: dict[int, dict[str, Any]] = {}
    for row in grid:
        if row["seed"] not in best or row["validation"] > best[row["seed"]]["validation"]:
            best[row["seed"]] = row
    return {seed: row["test"] for seed, row in best.items()}


def table(rows: Found) -> str:
    lines = []
    for network in RATES:
        tests = {
            m: by_seed(rows, "test", network=network, method=m) for m in (*GRID, *LEXICOGRAPHIC)
        }
        tests = {method: found for method, found in tests.items() if found}
        best = max((m for m in tests if m in GRID), key=lambda m: fmean(tests[m].values()))
        for method, found in tests.items():
            key = {"network": network, "method": method}
            name = f"**{method}** (best of the grid)" if method == best else method
            lines.append(
                [
                    network,
                    name,
                    mean_and_deviation([*found.values()]),
                    paired(found, tests[best]) if method != best else "",
                    mean_and_deviation([*by_seed(rows, "train_loss", **key).values()], 2),
                    mean_and_deviation([*by_seed(rows, "length", **key).values()], 1),
                    len(found),
                ]
            )
        pick = chosen(rows, network)
        found = mean_and_deviation([*pick.values()]), paired(pick, tests[best])
        lines.append([network, "chosen on validation", *found, "", "", len(pick)])
    header = ["network", "side loss", "test accuracy, %", "to the best of the grid"]
    return markdown([*header, "train loss", "length", "seeds"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    given = options(__doc__, 400, arguments, first=5)  # earlier seeds helped to find the rule
    print(table(conduct("lexicographic", CASES, trial, given)))


if __name__ == "__main__":
    main()
