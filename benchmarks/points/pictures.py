"""The same comparison for a small convolutional network on faces and objects.

A network a run, so the grid is thinner: the learning rate is the one of three that cross-entropy
prefers on validation for the first seed of a task; everybody uses it, for all seeds.
"""

from typing import Any

import torch
from torch import Tensor

from benchmarks.common.images import ImageParts, split_task
from benchmarks.common.networks import BIG, TINY, SmallCNN, flipped
from benchmarks.points.goals import GOALS
from benchmarks.points.judging import Cell, Judge
from benchmarks.points.methods import RUNS, Column
from setpoint.train import Averaged, score

TASKS = {
    "celeba": ("High_Cheekbones", "Smiling", "Wearing_Lipstick"),
    "cifar10": ("automobile", "deer", "horse"),
}
WIDTHS = {"cnn": BIG, "cnn-tiny": TINY}
RATES = (0.001, 0.002, 0.004)
REFERENCE = "cross-entropy"
EPOCHS = {"celeba": 10, "cifar10": 6}
GOALS_OF_IMAGES = ("fnr1", "pr95", "pauc")


def parts(task: str, seed: int) -> ImageParts:
    """``celeba/Smiling`` or ``cifar10/horse``: one attribute or class against the rest."""
    first, second = (6500, 8000) if task.startswith("celeba") else (14_000, 18_000)

    def rows(count: int) -> tuple[Tensor, Tensor, Tensor]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(1000 + seed))
        return order[:first], order[first:second], order[second:]

    return split_task(task, rows)


def train(
    cell: Cell, pictures: ImageParts, goals: list[str], runs: list[str], done: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """One row for every reading and goal, all at the rate that cross-entropy prefers."""
    labels = {name: getattr(pictures, name)[1].numpy() for name in pictures._fields}
    judge = Judge(labels, goals)
    tried = _known_rate(cell, done)
    for rate in tried:
        _train_one(cell, pictures, Column(REFERENCE, None, 0, rate), judge)
    best = max(tried, key=lambda rate: _liked(judge, rate))
    for name in runs:
        if name != REFERENCE:
            for goal in goals if RUNS[name].direct else [None]:
                _train_one(cell, pictures, Column(name, goal, 0, best), judge)
    return list(judge.rows(cell))


def _known_rate(cell: Cell, done: list[dict[str, Any]]) -> tuple[float, ...]:
    """The rate that was used for this task's first seed, or all."""
    used = {
        row["rate"]
        for row in done
        if (row["data"], row["model"], row["seed"]) == (cell.data, cell.model, 0)
        and row["method"] != REFERENCE
    }
    return tuple(used) if cell.seed and used else RATES


def _liked(judge: Judge, rate: float) -> float:
    """The mean validation metric of cross-entropy at this rate, over all goals."""
    found = [best.validation for (_, _, column), best in judge.best.items() if column.rate == rate]
    return sum(found) / len(found)


def _train_one(cell: Cell, pictures: ImageParts, column: Column, judge: Judge) -> None:
    (x, y), run = pictures.train, RUNS[column.run]
    each = len(y) // cell.batch
    steps = each * EPOCHS[cell.data.split("/")[0]]
    torch.manual_seed(cell.seed)
    model = SmallCNN(widths=WIDTHS[cell.model])
    average = Averaged(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=column.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss = run.loss(GOALS[column.goal or "fnr1"], steps, float(y.float().mean()), {})
    coins = torch.Generator().manual_seed(cell.seed)

    def scores(part: str, averaged: bool) -> Any:
        used = average.module if averaged else model
        return score(used, getattr(pictures, part)[0])[:, None].numpy()

    drawn = run.sampler(cell.batch).draw(y, steps=steps, seed=cell.seed)
    for step, batch in enumerate(drawn, start=1):
        found = model(flipped(x[batch.rows], coins))[:, 0]
        options = {} if batch.weights is None else {"resampling": batch.weights}
        optimizer.zero_grad()
        loss(found, y[batch.rows], **options).backward()
        optimizer.step()
        schedule.step()
        average.update()
        if step % each == 0:
            judge.look(step, [column], scores)
