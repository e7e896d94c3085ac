"""Training: small CNNs, one for each seed, with one criterion for a fixed number of steps.

No model selection: the networks of the last step are judged. What differs between methods is the
loss, and for AUCM its optimizer. The seeds of a method train side by side (``Stack``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.networks import SmallCNN
from benchmarks.programs.criteria import RATE, criterion, optimizer, slower
from benchmarks.programs.stack import Stack
from benchmarks.programs.tasks import Task

WIDTHS = (8, 16, 32)  # three strided layers, 6,200 weights
STAGES = (0.5, 0.75)  # the learning rate is divided by 3 here


def network(seed: int, outputs: int) -> SmallCNN:
    """The same start for every method."""
    torch.manual_seed(seed)
    return SmallCNN(outputs, WIDTHS)


def train(
    tasks: Sequence[Task],
    seeds: Sequence[int],
    method: str,
    *,
    steps: int,
    batch: int,
    rate: float = RATE,
) -> tuple[Stack, dict[str, Any]]:
    """The networks, CPU seconds for each, and the shares of steps without a gradient and failed."""
    classes = int(tasks[0].y_test.max()) + 1
    model = Stack([network(seed, classes if classes > 2 else 1) for seed in seeds])
    counts = torch.stack([torch.bincount(t.y[t.rows], minlength=classes) for t in tasks]).float()
    loss = criterion(method, counts)
    moves = optimizer(method, model, loss, rate)
    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    ends = {round(stage * steps) for stage in STAGES}
    still, failed, start = 0, 0, time.process_time()
    for step in range(steps):
        if step in ends:
            slower(moves)
        rows = [
            t.rows[torch.randint(len(t.rows), (batch,), generator=draw)]
            for t, draw in zip(tasks, draws, strict=True)
        ]
        images = torch.stack([t.x[r] for t, r in zip(tasks, rows, strict=True)])
        labels = torch.stack([t.y[r] for t, r in zip(tasks, rows, strict=True)], dim=1)
        scores = model(images)
        scores.retain_grad()
        moves.zero_grad()
        try:
            loss(scores if classes > 2 else scores[..., 0], labels).backward()
        except Exception:  # a peer's solver gave up: no step
            failed += 1
            continue
        assert scores.grad is not None
        still += int((scores.grad == 0).all(0).all(-1).sum())
        if bool(scores.grad.isfinite().all()):
            moves.step()
    spent = (time.process_time() - start) / len(seeds)
    lost = {"no_gradient": still / (steps * len(seeds)), "failed": failed / steps}
    return model, {"seconds": spent, **lost}


@torch.no_grad()
def predict(model: Stack, tasks: Sequence[Task], chunk: int = 500) -> Tensor:
    """Scores of the test parts, ``[members, n]`` or ``[members, n, classes]``, float64."""
    model.eval()
    pieces = zip(*(task.x_test.split(chunk) for task in tasks), strict=True)
    scores = torch.cat([model(torch.stack(piece)) for piece in pieces]).double().transpose(0, 1)
    return scores if scores.shape[-1] > 1 else scores[..., 0]
