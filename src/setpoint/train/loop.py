"""The loop: draw a batch, score it, step, average."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from setpoint._checks import whole
from setpoint.train.averaged import Averaged

Criterion = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Fitted:
    """A trained model, ready to be used (in evaluation mode), and what a step of it took."""

    model: nn.Module
    seconds_per_step: float


def fit(
    model: nn.Module,
    criterion: Criterion,
    x: Tensor,
    y: Tensor,
    *,
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    averaged: bool = True,
    on_step: Callable[[int, Tensor], None] | None = None,
) -> Fitted:
    """Train ``model`` in place with Adam for a number of steps.

    Args:
        model: Gives one score an example.
        criterion: Called like any PyTorch loss, ``criterion(scores, labels)``.
        x: The features of all examples.
        y: Their labels.
        steps: How many batches to train on.
        batch_size: Examples in a batch.
        learning_rate: Of Adam.
        seed: Decides which examples come in which batch, and nothing else.
        averaged: Return the running average of the weights instead of the last ones.
        on_step: Called after each step with its number (0 is the first) and its loss.

    Returns:
        The averaged model (or ``model`` itself) and the median time of a step.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    average = Averaged(model) if averaged else None
    seconds = []
    model.train()
    for step, rows in enumerate(batches(len(y), batch_size, steps=steps, seed=seed)):
        start = perf_counter()
        loss = criterion(model(x[rows]).squeeze(-1), y[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if average is not None:
            average.update()
        seconds.append(perf_counter() - start)
        if on_step is not None:
            on_step(step, loss.detach())
    trained = model if average is None else average.module
    return Fitted(trained.eval(), median(seconds))


def batches(count: int, size: int, *, steps: int, seed: int) -> Iterator[Tensor]:
    """Rows of ``steps`` batches: pass after pass in a new order, an incomplete last one left out.

    Example:
        >>> [len(rows) for rows in batches(10, 4, steps=3, seed=0)]
        [4, 4, 4]
    """
    size = min(whole(size, "batch_size", least=1), whole(count, "The number of examples", least=1))
    generator = torch.Generator().manual_seed(seed)
    left = whole(steps, "steps", least=1)
    while left:
        order = torch.randperm(count, generator=generator)
        for start in range(0, min(left, count // size) * size, size):
            yield order[start : start + size]
            left -= 1
