"""Train all models of one cell, judge them on the way, keep what validation prefers."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.points.goals import GOALS, judged, points
from benchmarks.points.methods import READINGS, RUNS, Column, columns_of
from benchmarks.points.stack import Stack, Stepper
from setpoint import Infeasible
from setpoint.datasets import Split

LOOKS = 20  # how often a run is judged on validation


class Cell(NamedTuple):
    """What all methods share: data, model class, optimizer, batch, start, seed."""

    data: str
    model: str = "linear"
    optimizer: str = "adam"
    batch: int = 512  # 0: all rows
    zero_head: bool = False
    seed: int = 0


RATES = {
    ("linear", "adam"): (0.01, 0.03, 0.1),
    ("mlp", "adam"): (0.003, 0.01, 0.03),
    ("linear", "sgd"): (0.1, 0.3, 1.0),
    ("mlp", "sgd"): (0.03, 0.1, 0.3),
}
HIDDEN = {"linear": 0, "mlp": 64}


@dataclass
class Best:
    """The checkpoint that validation prefers, for one column, reading and goal."""

    validation: float = -np.inf
    step: int = 0
    scores: Any = None


def train(
    cell: Cell, parts: Split, goals: list[str], runs: list[str], steps: int
) -> list[dict[str, Any]]:
    """One row for every reading and goal, its rate and setting picked on validation."""
    goals = [goal for goal in goals if goal in judged(int((parts.test.y == 0).sum()))]
    best: dict[tuple[str, str, Column], Best] = {}
    by_sampler: dict[Any, list[str]] = {}
    for name in runs:
        by_sampler.setdefault(RUNS[name].sampler, []).append(name)
    rates = RATES[cell.model, cell.optimizer]
    for sampler, names in by_sampler.items():
        columns = list(columns_of(names, goals, rates))
        _train_stack(cell, parts, goals, columns, sampler, steps, best)
    return list(rows(cell, parts.test.y, goals, best))


def _train_stack(cell, parts, goals, columns, sampler, steps, best) -> None:
    x, y = torch.as_tensor(parts.train.x), torch.as_tensor(parts.train.y)
    held_out = torch.as_tensor(parts.validation.x)
    stack = Stack(x.shape[1], HIDDEN[cell.model], len(columns), cell.seed, cell.zero_head)
    stepper = Stepper(stack, torch.tensor([c.rate for c in columns]), cell.optimizer)
    losses = _losses(columns, steps, float(y.float().mean()))
    size = min(cell.batch or len(y), len(y))
    for step, batch in enumerate(sampler(size).draw(y, steps=steps, seed=cell.seed), start=1):
        labels = y[batch.rows, None]
        scores = stack(x[batch.rows])
        total = scores.new_zeros(())
        for loss, place in losses:
            count = place.stop - place.start
            options = {} if batch.weights is None else {"weights": batch.weights}
            total = total + count * loss(scores[:, place], labels.expand(-1, count), **options)
        total.backward()
        stepper.step()
        if step % max(1, steps // LOOKS) == 0:
            _look(step, stepper, held_out, parts, goals, columns, best)


def _losses(columns: list[Column], steps: int, positives: float) -> list[tuple[Any, slice]]:
    """The loss of each run of neighbouring columns that share one."""
    found, start = [], 0
    for key, group in groupby(columns, key=lambda c: c[:3]):
        name, goal, setting = key
        stop = start + len(list(group))
        run = RUNS[name]
        problem = GOALS[goal or "fnr1"]
        loss = run.loss(problem, steps, positives, run.settings[setting])
        found.append((loss, slice(start, stop)))
        start = stop
    return found


def _look(step, stepper, held_out, parts, goals, columns, best) -> None:
    """Take the validation metrics of all columns; where one is the best yet, score the test."""
    test = torch.as_tensor(parts.test.x)
    for averaged in (False, True):
        readings = [n for n, r in READINGS.items() if r.averaged == averaged]
        seen = stepper.scores(held_out, averaged).numpy()
        fresh: Tensor | None = None
        for place, column in enumerate(columns):
            for name in readings:
                if READINGS[name].run != column.run:
                    continue
                for goal in [column.goal] if column.goal else goals:
                    found = value(goal, seen[:, place], parts.validation.y)
                    mine = best.setdefault((name, goal, column), Best())
                    if found > mine.validation:
                        fresh = stepper.scores(test, averaged) if fresh is None else fresh
                        mine.validation, mine.step = found, step
                        mine.scores = fresh[:, place].numpy().copy()


def value(goal: str, scores: Any, labels: Any) -> float:
    """The goal in points; nothing reached counts 0."""
    if not np.isfinite(scores).all():
        return 0.0
    try:
        return points(goal, GOALS[goal].evaluate(scores, labels))
    except Infeasible:
        return 0.0


def rows(cell: Cell, labels: Any, goals: list[str], best: Any) -> Iterator[dict[str, Any]]:
    """One row for every reading and goal: the column that validation prefers, and all others."""
    for name in READINGS:
        for goal in goals:
            mine = {c: b for (n, g, c), b in best.items() if n == name and g == goal}
            mine = {c: b for c, b in mine.items() if b.scores is not None}
            if not mine:
                continue
            tests = {c: value(goal, b.scores, labels) for c, b in mine.items()}
            pick = max(mine, key=lambda c: mine[c].validation)
            yield {
                **cell._asdict(),
                "goal": goal,
                "method": name,
                "validation": round(mine[pick].validation, 4),
                "test": round(tests[pick], 4),
                "rate": pick.rate,
                "setting": RUNS[pick.run].settings[pick.setting],
                "step": mine[pick].step,
                "by_rate": {
                    f"{c.rate}/{c.setting}": [round(b.validation, 3), round(tests[c], 3)]
                    for c, b in mine.items()
                },
            }
