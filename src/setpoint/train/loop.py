"""The loop: draw a batch, score it, step, average; judge every pass by the goal's own metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from setpoint._checks import whole
from setpoint.solvers.registry import Criterion
from setpoint.solvers.samplers import Sampler, Shuffled, batches
from setpoint.train.averaged import Averaged
from setpoint.train.groups import columns_of
from setpoint.train.progress import ProgressLine
from setpoint.train.recipe import recipe
from setpoint.train.run import Data, Run
from setpoint.train.state import History, State
from setpoint.train.team import Team
from setpoint.train.validation import Validation

__all__ = ["Criterion", "Fitted", "batches", "fit"]


@dataclass(frozen=True)
class Fitted:
    """A trained model, ready to be used (in evaluation mode), and how the training went.

    Attributes:
        model: The model of the best pass by the validation metric, or of the last step without it.
        seconds_per_step: The median (NaN if a finished run was only read back).
        history: One plain dict a pass: epoch, step, loss, validation, seconds, status.
        best: The best value of the validation metric, and ``best_epoch`` the pass that had it.
    """

    model: nn.Module
    seconds_per_step: float
    history: History = field(default_factory=list)
    best: float | None = None
    best_epoch: int | None = None


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
    weights: Tensor | None = None,
    groups: Any = None,
    sampler: Sampler | None = None,
    validation: Validation | None = None,
    patience: int | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = False,
    on_step: Callable[[int, Tensor], None] | None = None,
) -> Fitted:
    """Train ``model`` in place with Adam for a number of steps.

    In a process group of several ranks each passes the rows that it has, of training and of
    validation data, and its own copy of the model: they train together, on the batches that one
    process with the rows of all (in the order of the ranks) would draw.

    Args:
        model: Gives one score an example.
        criterion: Called like any PyTorch loss, ``criterion(scores, labels)``; with
            ``weights=`` too when the sampler or ``weights`` below give any.
        x: The features of all examples.
        y: Their labels.
        steps: How many batches to train on.
        batch_size: Examples in a batch.
        learning_rate: Of Adam.
        seed: Decides which examples come in which batch, and nothing else.
        averaged: Return the running average of the weights instead of the last ones.
        weights: One an example, optional.
        groups: A column of group values, or a dict of columns, for a criterion that takes
            ``groups=``; others are not asked.
        sampler: Which examples make a batch, such as ``Stratified(512)``; takes the place of
            ``batch_size``. Without it, pass after pass in a new order.
        validation: Held-out data. After every pass the goal's metric is taken there, and the
            weights of the best pass are returned.
        patience: Stop after so many passes without a better metric. A criterion that fades over
            ``steps`` is cut short by it.
        checkpoint: A folder. After every pass all state is written there in one step, and a run
            that was killed goes on from it and ends with the same numbers. What another run left
            there (other settings, data or initial weights) is refused.
        progress: Show a line on stderr.
        on_step: Called after each step with its number (0 is the first) and its loss.

    Returns:
        The averaged model (or ``model`` itself), its history and the median time of a step.
    """
    sampler = sampler if sampler is not None else Shuffled(whole(batch_size, "batch_size", least=1))
    steps = whole(steps, "steps", least=1)
    _check(x, y, validation, patience)
    run = Run(
        state=State(
            model,
            torch.optim.Adam(model.parameters(), lr=learning_rate),
            Averaged(model) if averaged else None,
            criterion,
            {},
        ),
        team=Team.of(model, criterion, y),
        data=Data(x, y, weights, columns_of(groups, len(y))),
        validation=validation,
        patience=None if patience is None else whole(patience, "patience", least=1),
        folder=None if checkpoint is None else Path(checkpoint),
    )
    if checkpoint is not None:
        chosen = {"patience": patience, "averaged": averaged, "learning_rate": learning_rate}
        run.recipe = _recipe(run, chosen | {"steps": steps, "seed": seed, "sampler": sampler})
    return _train(run, sampler, steps, seed, ProgressLine(steps, shown=progress), on_step)


def _check(x: Tensor, y: Tensor, validation: Validation | None, patience: int | None) -> None:
    if len(x) != len(y):
        raise ValueError(f"x and y must have one row an example; got {len(x)} and {len(y)}.")
    if patience is not None and validation is None:
        raise ValueError("patience needs validation=: there is nothing to be patient about.")
    if validation is not None:
        validation.check()


def _recipe(run: Run, settings: dict[str, Any]) -> Any:
    """What a checkpoint must have been made with to be gone on from."""
    validation = run.validation
    settings["goal"] = "" if validation is None else validation.problem
    held_out = None if validation is None else validation.parts
    rows = {"data": tuple(run.data), "validation": held_out}
    return recipe(run.state.criterion, settings, rows, start=run.state.model.state_dict())


def _train(
    run: Run,
    sampler: Sampler,
    steps: int,
    seed: int,
    line: ProgressLine,
    on_step: Callable[[int, Tensor], None] | None,
) -> Fitted:
    """All steps that are left, pass after pass."""
    y = run.team.labels
    run.resume()
    pass_length = max(1, len(y) // min(sampler.size, max(1, len(y))))
    run.state.model.train()
    for step, batch in enumerate(sampler.draw(y, steps=steps, seed=seed)):
        if run.progress.finished or step < run.progress.step:  # already done before a restart
            continue
        loss = run.step(batch)
        line.update(step + 1, run.note)
        if on_step is not None:
            on_step(step, loss)
        if (step + 1) % pass_length == 0 or step + 1 == steps:
            run.end_of_pass(last=step + 1 == steps)
    line.close()
    seconds = median(run.seconds) if run.seconds else float("nan")
    done = run.progress
    return Fitted(run.result(), seconds, done.history, done.best, done.best_epoch)
