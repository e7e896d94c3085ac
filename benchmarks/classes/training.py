"""One run: train, look at validation images after every second pass, judge on test images."""

import time
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.classes.data import CLASSES, Tail
from benchmarks.classes.methods import BALANCED, METHODS, WORST, loss_of
from benchmarks.common.networks import SmallCNN, flipped
from setpoint.train import Averaged, score

GOALS = {"macro recall": BALANCED, "worst recall": WORST}
BATCH = 128


def train(tail: Tail, name: str, seed: int, steps: int, rate: float) -> list[dict[str, Any]]:
    """Rows of one method and seed: decided by argmax, and by shifts chosen on validation images."""
    method, started = METHODS[name], time.process_time()
    torch.manual_seed(seed)
    model = SmallCNN(CLASSES)
    average, criterion = Averaged(model), method.criterion(tail.priors, steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    best: dict[tuple[str, str], tuple[float, nn.Module]] = {}
    every = 2 * max(1, len(tail.y) // BATCH)
    for step, (rows, weights) in enumerate(
        method.sampler(BATCH).draw(tail.y, steps=steps, seed=seed)
    ):
        model.train()
        scores = model(flipped(tail.x[rows], generator))
        loss = loss_of(criterion, scores, tail.y[rows], weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        if (step + 1) % every == 0 or step + 1 == steps:
            _keep_best(best, average.module, tail)
    seconds = time.process_time() - started
    found = []
    for (goal, decision), (value, kept) in best.items():
        row = _judge(kept, tail, goal, decision)
        found.append(
            {
                "method": name,
                "seed": seed,
                "goal": goal,
                "decision": decision,
                "validation": value,
                **row,
                "steps": steps,
                "rate": rate,
                "seconds": round(seconds, 1),
            }
        )
    return found


def decisions(scores: Tensor, goal: str, labels: Tensor) -> dict[str, tuple[float, ...]]:
    """The shifts of every way to decide."""
    chosen = GOALS[goal].choose(scores, labels).thresholds
    return {"argmax": (0.0,) * CLASSES, "shifts": tuple(chosen)}


def _keep_best(best: dict[Any, Any], model: nn.Module, tail: Tail) -> None:
    """Every way to decide has its own best pass: none is judged by another's."""
    scores = score(model, tail.x_val)
    for goal, problem in GOALS.items():
        for decision, shifts in decisions(scores, goal, tail.y_val).items():
            value = problem.evaluate(scores, tail.y_val, shifts)
            if value > best.get((goal, decision), (-1.0, None))[0]:
                best[goal, decision] = (value, deepcopy(model))


def _judge(model: nn.Module, tail: Tail, goal: str, decision: str) -> dict[str, float]:
    """Balanced error and worst recall on test images, with the shifts of the validation images."""
    shifts = decisions(score(model, tail.x_val), goal, tail.y_val)[decision]
    scores = score(model, tail.x_test)
    return {
        "balanced_error": 1 - BALANCED.evaluate(scores, tail.y_test, shifts),
        "worst_recall": WORST.evaluate(scores, tail.y_test, shifts),
    }
