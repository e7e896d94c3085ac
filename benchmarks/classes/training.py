"""One run: train, look at validation images after every second pass, judge on test images."""

import time
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from benchmarks.classes.data import CLASSES, Tail
from benchmarks.classes.methods import BALANCED, METHODS, WORST, loss_of
from benchmarks.common.networks import SmallCNN, flipped
from setpoint.train import Averaged, score

GOALS = {"macro recall": BALANCED, "worst recall": WORST}
BATCH = 128


def train(tail: Tail, name: str, seed: int, steps: int, rate: float) -> list[dict[str, Any]]:
    """Rows of one method and seed, one for each way to decide.

    The pass is chosen by the macro recall of validation images with the best shifts, for all.
    """
    method, started = METHODS[name], time.process_time()
    torch.manual_seed(seed)
    model = SmallCNN(CLASSES)
    average, criterion = Averaged(model), method.criterion(tail.priors, steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    best: tuple[float, nn.Module | None] = (-1.0, None)
    every = 2 * max(1, len(tail.y) // BATCH)
    batches = method.sampler(BATCH).draw(tail.y, steps=steps, seed=seed)
    for step, (rows, weights) in enumerate(batches):
        model.train()
        scores = model(flipped(tail.x[rows], generator))
        loss = loss_of(criterion, scores, tail.y[rows], weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        if (step + 1) % every == 0 or step + 1 == steps:
            value = BALANCED.evaluate(score(average.module, tail.x_val), tail.y_val)
            best = max(best, (value, deepcopy(average.module)), key=lambda kept: kept[0])
    seconds = time.process_time() - started
    common = {"method": name, "seed": seed, "validation": best[0], "steps": steps, "rate": rate}
    assert best[1] is not None
    return [{**common, **row, "seconds": round(seconds, 1)} for row in _judge(best[1], tail)]


def _judge(model: nn.Module, tail: Tail) -> list[dict[str, Any]]:
    """Balanced error and worst recall on test images, decided in three ways."""
    known, scores = score(model, tail.x_val), score(model, tail.x_test)
    decisions = {"argmax": (0.0,) * CLASSES}
    for goal, problem in GOALS.items():
        decisions[f"shifts for {goal}"] = problem.choose(known, tail.y_val).thresholds
    return [
        {
            "decision": decision,
            "balanced_error": 1 - BALANCED.evaluate(scores, tail.y_test, shifts),
            "worst_recall": WORST.evaluate(scores, tail.y_test, shifts),
        }
        for decision, shifts in decisions.items()
    ]
