"""Train all models of one cell beside each other, and keep what validation prefers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import torch

from benchmarks.points.stack import Stack, Stepper
from benchmarks.study.methods import WAYS, Column, columns
from benchmarks.study.metrics import judged, metrics
from setpoint.datasets import DataSplit

STEPS, BATCH, LOOKS = 1000, 512, 10
Row = dict[str, Any]


@dataclass
class Kept:
    """The best look so far of one column, for one goal."""

    validation: float = -1.0
    test: float = 0.0
    step: int = 0
    averaged: bool = False


@dataclass
class Looks:
    """Last and averaged weights of every column, judged on validation by every goal."""

    parts: DataSplit
    goals: list[str]
    kept: dict[tuple[Column, str], Kept] = field(default_factory=dict)

    def look(self, step: int, mine: list[Column], stepper: Stepper) -> None:
        """Where validation is the best yet, take the test value of the same weights."""
        for averaged in (False, True):
            seen = stepper.scores(torch.as_tensor(self.parts.validation.x), averaged)
            better: dict[int, list[str]] = {}
            for place, column in enumerate(mine):
                found = metrics(seen[:, place], self.parts.validation.y)
                for goal in [column.goal] if column.goal else self.goals:
                    best = self.kept.setdefault((column, goal), Kept())
                    if found[goal] > best.validation:
                        best.validation, best.step, best.averaged = found[goal], step, averaged
                        better.setdefault(place, []).append(goal)
            if better:
                tests = stepper.scores(torch.as_tensor(self.parts.test.x), averaged)
                for place, goals in better.items():
                    found = metrics(tests[:, place], self.parts.test.y)
                    for goal in goals:
                        self.kept[mine[place], goal].test = found[goal]

    def rows(self, way: str) -> list[Row]:
        """One row for every goal: the setting, rate, step and weights that validation prefers."""
        made = []
        for goal in self.goals:
            mine = {c: k for (c, g), k in self.kept.items() if c.way == way and g == goal}
            if not mine:
                continue
            pick = max(mine, key=lambda column: mine[column].validation)
            best = mine[pick]
            row = {"goal": goal, "method": way, "rate": pick.rate, "setting": pick.setting}
            row |= {"validation": round(best.validation, 4), "test": round(best.test, 4)}
            made.append(row | {"step": best.step, "averaged": best.averaged})
        return made


def train(
    parts: DataSplit,
    way: str,
    hidden: int,
    seed: int,
    steps: int = STEPS,
    goals: list[str] | None = None,
    stack: Callable[..., Any] = Stack,
) -> list[Row]:
    """All settings and rates of one way on the same batches from the same start."""
    goals = judged(parts.test.y) if goals is None else goals
    mine = list(columns(way, goals, linear=hidden == 0))
    if not mine:
        return []
    x, y = torch.as_tensor(parts.train.x), torch.as_tensor(parts.train.y)
    models = stack(x.shape[1], hidden, len(mine), seed, zero_head=False)
    stepper = Stepper(models, torch.tensor([column.rate for column in mine]), "adam")
    losses = _losses(mine, steps)
    looks = Looks(parts, goals)
    batches = WAYS[way].sampler(min(BATCH, len(y))).draw(y, steps=steps, seed=seed)
    for step, batch in enumerate(batches, start=1):
        scores, labels = models(x[batch.rows]), y[batch.rows, None]
        options = {} if batch.weights is None else {WAYS[way].takes: batch.weights}
        total = scores.new_zeros(())
        for loss, place in losses:
            count = place.stop - place.start  # a loss is the mean over its columns
            total = total + count * loss(scores[:, place], labels.expand(-1, count), **options)
        total.backward()
        stepper.step()
        if step % max(1, steps // LOOKS) == 0:
            looks.look(step, mine, stepper)
    return looks.rows(way)


def _losses(mine: list[Column], steps: int) -> list[tuple[Any, slice]]:
    """The loss of each run of neighbouring columns that share one."""
    found, start = [], 0
    for (way, goal, setting), group in groupby(mine, key=lambda column: column[:3]):
        stop = start + len(list(group))
        found.append((WAYS[way].loss(goal or "", steps, setting), slice(start, stop)))
        start = stop
    return found
