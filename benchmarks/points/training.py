"""Train all linear models or small networks of one cell, hundreds at once."""

from functools import cache
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from benchmarks.points.goals import GOALS, judged
from benchmarks.points.ideas_seeing import Finishing, Seeing
from benchmarks.points.judging import Cell, Judge, Scores
from benchmarks.points.methods import RUNS, Column, columns_of
from benchmarks.points.stack import Stack, Stepper
from setpoint.datasets import DataSplit

LOOKS = 20  # how often a run is judged on validation
RATES = {
    ("linear", "adam"): (0.01, 0.03, 0.1),
    ("mlp", "adam"): (0.003, 0.01, 0.03),
    ("linear", "sgd"): (0.1, 0.3, 1.0),
    ("mlp", "sgd"): (0.03, 0.1, 0.3),
    ("linear", "adagrad"): (0.1,),  # the paper's, for its own method
}
HIDDEN = {"linear": 0, "mlp": 64}


def train(
    cell: Cell, parts: DataSplit, goals: list[str], runs: list[str], steps: int
) -> list[dict[str, Any]]:
    """One row for every reading and goal, its rate and setting picked on validation."""
    known = judged(int((parts.test.y == 0).sum()))
    labels = {name: getattr(parts, name).y for name in parts._fields}
    judge = Judge(labels, [goal for goal in goals if goal in known])
    by_sampler: dict[Any, list[str]] = {}
    for name in runs:
        by_sampler.setdefault(RUNS[name].sampler, []).append(name)
    for sampler, names in by_sampler.items():
        columns = list(columns_of(names, judge.goals, RATES[cell.model, cell.optimizer]))
        train_stack(cell, parts, columns, sampler, steps, judge)
    return list(judge.rows(cell))


def train_stack(
    cell: Cell, parts: DataSplit, columns: list[Column], sampler: Any, steps: int, judge: Judge
) -> None:
    """Train all columns on the same batches, and let the judge look on the way."""
    features = {name: torch.as_tensor(getattr(parts, name).x) for name in parts._fields}
    x, y = features["train"], torch.as_tensor(parts.train.y)
    stack = Stack(x.shape[1], HIDDEN[cell.model], len(columns), cell.seed, cell.zero_head)
    stepper = Stepper(stack, torch.tensor([c.rate for c in columns]), cell.optimizer)
    losses = _losses(columns, steps, float(y.float().mean()))
    size = min(cell.batch or len(y), len(y))
    for step, batch in enumerate(sampler(size).draw(y, steps=steps, seed=cell.seed), start=1):
        rows, labels = x[batch.rows], y[batch.rows, None]
        scores = stack(rows)
        options = {} if batch.weights is None else {"resampling": batch.weights}
        total: Tensor = scores.new_zeros(())
        for loss, place in losses:
            if isinstance(loss, Seeing):
                loss.see(stepper, rows, place)
            count = place.stop - place.start  # a loss is the mean over its columns
            total = total + count * loss(scores[:, place], labels.expand(-1, count), **options)
        total.backward()
        stepper.step()
        if step % max(1, steps // LOOKS) == 0:
            judge.look(step, columns, _scores(stepper, features))
    for loss, place in losses:
        if isinstance(loss, Finishing):
            loss.finish(stepper, place, parts)
            judge.look(steps, columns, _scores(stepper, features))


def _scores(stepper: Stepper, features: dict[str, Tensor]) -> Scores:
    """Scores by the weights of this moment, computed once for all readings."""
    return cache(lambda part, mean: stepper.scores(features[part], mean))


def _losses(columns: list[Column], steps: int, positives: float) -> list[tuple[Any, slice]]:
    """The loss of each run of neighbouring columns that share one."""
    found, start = [], 0
    for key, group in groupby(columns, key=lambda c: c[:3]):
        name, goal, setting = key
        stop = start + len(list(group))
        run = RUNS[name]
        loss = run.loss(GOALS[goal or "fnr1"], steps, positives, run.settings[setting])
        found.append((loss, slice(start, stop)))
        start = stop
    return found
