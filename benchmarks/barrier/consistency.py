"""Table 2 of the paper: agreement with one's own answer on moved images, after the labelled loss.

    python -m benchmarks.barrier.consistency            # about three minutes of one idle core
    python -m benchmarks.barrier.consistency --quick    # one minute

A small network learns CIFAR-10 from 100, 250 or 1,000 labels and 10,000 images without labels. The
side loss is KL(answer to the image, answer to the image mirrored, shifted and with a hole), the
first held fixed as in UDA. The schedule is the paper's: the weight of the labelled loss falls from
infinity to 0.2, so that of the side loss grows in a line from 0 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from benchmarks.barrier import pictures, rules
from benchmarks.barrier.front_rows import markdown
from benchmarks.barrier.pictures import WIDTHS
from benchmarks.barrier.study import Found, by_seed, conduct, descend, options, paired
from benchmarks.common.networks import SmallCNN
from benchmarks.common.tables import mean_and_deviation

LABELS = (100, 250, 1000)
LABELLED, UNLABELLED = 40, 40
METHODS = ("labels only", "schedule", "lexicographic", "printed")
CASES = [{"labels": n, "method": m} for n in LABELS for m in METHODS]


def combination(method: str, model: nn.Module) -> rules.Rule:
    if method == "labels only":
        return rules.main_only
    if method == "schedule":
        return rules.scheduled(5.0)
    return rules.named(method, model.parameters())


def disagreement(still: Tensor, moved: Tensor) -> Tensor:
    """How far the answers to moved images are from those to the images themselves."""
    target = log_softmax(still.detach(), 1)
    return kl_div(log_softmax(moved, 1), target, reduction="batchmean", log_target=True)


def balanced(y: Tensor, labels: int) -> Tensor:
    """The first images of every class, ``labels`` in all."""
    classes = int(y.max()) + 1
    rows = [torch.nonzero(y == k)[: labels // classes, 0] for k in range(classes)]
    return torch.cat(rows)


def trial(labels: int, method: str, seed: int, steps: int, synthetic: bool) -> dict[str, Any]:
    parts = (
        pictures.cut(*pictures.made_up(), 64, 8)
        if synthetic
        else pictures.cifar10(seed, train=10_000, validation=0)
    )
    known = balanced(parts.y, min(labels, len(parts.y) // 2))
    random = torch.Generator().manual_seed(seed)
    model = SmallCNN(10, WIDTHS)

    def losses() -> tuple[Tensor, Tensor]:
        rows = known[torch.randint(len(known), (LABELLED,), generator=random)]
        still = parts.x[torch.randint(len(parts.x), (UNLABELLED,), generator=random)]
        images = [pictures.moved(parts.x[rows], random), still, pictures.moved(still, random)]
        first, second, third = model(torch.cat(images)).split([LABELLED, UNLABELLED, UNLABELLED])
        return cross_entropy(first, parts.y[rows]), disagreement(second, third)

    weight = descend(model, losses, combination(method, model), steps, rate=0.05)
    outputs = pictures.outputs_of(model, parts.x[known])
    return {
        "test": pictures.accuracy(model, parts.x_test, parts.y_test),
        "train_loss": float(cross_entropy(outputs, parts.y[known])),
        "disagreement": agreement_of(model, parts.x_test[:2000], seed),
        "weight": min(weight, 1e9),
    }


def agreement_of(model: nn.Module, x: Tensor, seed: int) -> float:
    moved = pictures.moved(x, torch.Generator().manual_seed(seed))
    return float(disagreement(pictures.outputs_of(model, x), pictures.outputs_of(model, moved)))


def table(rows: Found) -> str:
    lines = []
    for labels in LABELS:
        reference = by_seed(rows, "test", labels=labels, method="schedule")
        for method in METHODS:
            key = {"labels": labels, "method": method}
            found = by_seed(rows, "test", **key)
            if not found:
                continue
            lines.append(
                [
                    labels,
                    method,
                    mean_and_deviation([*found.values()]),
                    "" if method == "schedule" else paired(found, reference),
                    mean_and_deviation([*by_seed(rows, "train_loss", **key).values()], 2),
                    mean_and_deviation([*by_seed(rows, "disagreement", **key).values()], 2),
                    len(found),
                ]
            )
    header = ["labels", "method", "test accuracy, %", "to the schedule"]
    return markdown([*header, "labelled loss", "disagreement", "seeds"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    given = options(__doc__, 200, arguments)
    print(table(conduct("consistency", CASES, trial, given)))


if __name__ == "__main__":
    main()
