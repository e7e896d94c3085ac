"""One training run: its steps, its passes, and where it left off."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from inspect import signature
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._checks import whole
from setpoint.distributed import rank_of
from setpoint.solvers.samplers import Batch, Sampler, Shuffled, batches
from setpoint.train.averaging import Averaged
from setpoint.train.checkpoints import (
    History,
    OtherRun,
    Progress,
    RunState,
    load_checkpoint,
    recipe,
    save_checkpoint,
)
from setpoint.train.ranks import Team, from_first
from setpoint.train.validation import Validation


class Examples(NamedTuple):
    """All examples: features, labels, weights and group columns, or None."""

    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    groups: dict[str, Any] | Any = None


@dataclass
class Run:
    """A run in progress; :func:`setpoint.train.fit` drives it."""

    state: RunState
    team: Team
    data: Examples
    validation: Validation | None
    patience: int | None
    folder: Path | None
    recipe: dict[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    seconds: list[float] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    note: str = ""

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one of this very run."""
        if self.folder is None:
            return
        found = from_first(load_checkpoint(self.folder) if rank_of() == 0 else None)
        if found is None:
            return
        tensors, record = found
        if record.get("recipe") != self.recipe:
            was = {k: v for k, v in record.get("recipe", {}).items() if self.recipe.get(k) != v}
            raise OtherRun(
                f"The checkpoint in {self.folder} is of another run (it had {was}). "
                "Use another folder, or delete it."
            )
        self.state.restore(tensors)
        self.progress = Progress(**record["progress"])

    def step(self, batch: Batch) -> Tensor:
        """Train on one batch; returns its loss."""
        start = perf_counter()
        batch = self.team.own(batch)
        x, y, weights, groups = self.data
        rows = batch.rows.to(x.device)
        options = self._weighed(
            batch.weights, None if weights is None else weights[rows].to(x.device)
        )
        if groups is not None and _takes("groups", self.state.criterion):
            options["groups"] = group_rows(groups, batch.rows)
        scores = self.team.model(x[rows]).squeeze(-1)
        loss = self.team.criterion(scores, y[rows], **options)
        self.state.optimizer.zero_grad()
        loss.backward()
        self.state.optimizer.step()
        if self.state.average is not None:
            self.state.average.update()
        self.seconds.append(perf_counter() - start)
        self.losses.append(loss.detach())
        self.progress.step += 1
        return cast(Tensor, loss.detach())

    def _weighed(self, drawn: Tensor | None, own: Tensor | None) -> dict[str, Tensor]:
        """Weights of the sampler and of the examples, apart where the criterion takes them so."""
        if drawn is not None:
            drawn = drawn.to(self.data.x.device)
            if _takes("resampling", self.state.criterion):
                return {"resampling": drawn} | ({} if own is None else {"weights": own})
            own = drawn if own is None else drawn * own
        return {} if own is None else {"weights": own}

    def end_of_pass(self, *, last: bool) -> None:
        """Judge the model, write history, keep the best weights, and checkpoint."""
        done = self.progress
        epoch = len(done.history) + 1
        value, trouble = None, ""
        if self.validation is not None:
            value, trouble = self.validation.metric(self._current())
            if self.validation.better(value, done.best):
                done.best, done.best_epoch = value, epoch
                current = self._current().state_dict()
                self.state.best = {name: t.detach().clone() for name, t in current.items()}
        done.history.append(
            {
                "epoch": epoch,
                "step": done.step,
                "loss": float(torch.stack(self.losses).mean()),
                "validation": value,
                "seconds": sum(self.seconds[-len(self.losses) :]),
                "status": trouble or str(getattr(self.state.criterion, "status", "")),
            }
        )
        self.losses = []
        self.note = "" if value is None else f"validation {value:.4g}"
        waited = epoch - (done.best_epoch or 0)
        done.finished = last or (self.patience is not None and waited >= self.patience)
        if self.folder is not None and rank_of() == 0:
            record = {"recipe": self.recipe, "progress": asdict(done)}
            save_checkpoint(self.folder, self.state.tensors(), record)

    def result(self) -> nn.Module:
        """The best model there was, in evaluation mode."""
        model = self._current()
        if self.state.best:
            model.load_state_dict(self.state.best)
        return model.eval()

    def _current(self) -> nn.Module:
        average = self.state.average
        return self.state.model if average is None else average.module


def _takes(keyword: str, criterion: object) -> bool:
    call = criterion.forward if isinstance(criterion, nn.Module) else criterion
    return keyword in signature(cast(Any, call)).parameters


# ------------------------------------------------------------------------------------------------
# Group columns: one of them or a dict by name, arrays or tensors, cut to some of the rows.


def group_columns(groups: Any, count: int) -> Any:
    """Columns that rows can be taken from, each checked to have one value an example."""
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {name: group_columns(column, count) for name, column in groups.items()}
    column = groups if isinstance(groups, Tensor) else np.asarray(groups)
    if column.shape != (count,):
        shape = tuple(column.shape)
        raise ValueError(f"groups must have one value an example, ({count},); got {shape}.")
    return column


def group_rows(groups: Any, rows: Any) -> Any:
    """The values of some rows, given as an array or a tensor of indices."""
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {name: group_rows(column, rows) for name, column in groups.items()}
    if isinstance(groups, Tensor):
        return groups[rows.to(groups.device) if isinstance(rows, Tensor) else rows]
    return groups[rows.cpu().numpy() if isinstance(rows, Tensor) else rows]


# ------------------------------------------------------------------------------------------------
# The loop: draw a batch, score it, step, average; judge every pass by the goal's own metric.


Criterion = Callable[..., Tensor]
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
        state=RunState(
            model,
            torch.optim.Adam(model.parameters(), lr=learning_rate),
            Averaged(model) if averaged else None,
            criterion,
            {},
        ),
        team=Team.of(model, criterion, y),
        data=Examples(x, y, weights, group_columns(groups, len(y))),
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


# ------------------------------------------------------------------------------------------------
# One line on stderr that says how far a run is; nothing where nobody watches.


_WIDTH = 30
_EVERY = 0.1
"""Seconds between two looks."""


class ProgressLine:
    """A bar that is drawn over itself.

    Args:
        total: The number of steps.
        shown: False: draw nothing.
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self.total, self.shown = total, shown
        self._start = perf_counter()
        self._drawn = -_EVERY

    def update(self, done: int, note: str = "") -> None:
        """Draw the bar, unless that was done a moment ago."""
        elapsed = perf_counter() - self._start
        if not self.shown or (elapsed - self._drawn < _EVERY and done < self.total):
            return
        self._drawn = elapsed
        filled = round(_WIDTH * done / self.total)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        sys.stderr.write(f"\r{bar} {done:,}/{self.total:,} steps, {elapsed:.0f} s  {note}\x1b[K")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line."""
        if self.shown:
            sys.stderr.write("\n")
