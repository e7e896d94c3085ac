"""The training loop: draw a batch, score it, step, average the weights.

After every pass over the data the goal's own metric is taken on validation data, the best weights
are kept, and all state is written to a checkpoint, so that a killed run goes on where it was.

On several processes batches are drawn from the rows of all ranks, the same batches on every rank; a
rank trains on those rows of a batch that it has. So a run on four processes draws the batches of a
run on one, and can resume its checkpoint.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint._checks import whole
from setpoint.distributed import gather_rows, rank_of, values_of_ranks, workers
from setpoint.solvers import BatchCriterion, GlobalBatch
from setpoint.solvers.registry import Criterion
from setpoint.solvers.samplers import Batch, Sampler, Shuffled
from setpoint.train.averaging import Averaged
from setpoint.train.checkpoints import (
    EpochLog,
    OtherRun,
    Progress,
    RunState,
    load_checkpoint,
    recipe_of,
    save_checkpoint,
)
from setpoint.train.validation import Validation

OnStep = Callable[[int, Tensor], None]
_MOST_MEASURED = 100
"""How often the goal is measured in a run: with more passes, only after every second or third."""
_SECONDS_LOST = 1.0
"""What a killed run may lose: passes that are shorter than this have no checkpoint each."""


@dataclass(frozen=True)
class Fitted:
    """A trained model, ready to be used (in evaluation mode), and how the training went.

    Attributes:
        model: The model of the best pass by the validation metric, or of the last step without it.
        seconds_per_step: The median; NaN if a finished run was only read back.
        history: One dict per measured pass: epoch, step, loss, validation, seconds, status.
        best: The best value of the validation metric, and ``best_epoch`` the pass that had it.
    """

    model: nn.Module
    seconds_per_step: float
    history: EpochLog = field(default_factory=list)
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
    on_step: OnStep | None = None,
) -> Fitted:
    """Train ``model`` in place with Adam for a number of steps.

    In a process group of several ranks each passes the rows that it has, of training and of
    validation data, and its own copy of the model: they train together, on the batches that one
    process with the rows of all (in the order of the ranks) would draw.

    Args:
        model: Gives one score per example, or one per class.
        criterion: Called like any PyTorch loss, ``criterion(scores, labels)``; with
            ``weights=`` too when the sampler or ``weights`` below give any.
        x: The features of all examples.
        y: Their labels.
        steps: How many batches to train on.
        batch_size: Examples in a batch.
        learning_rate: Of Adam.
        seed: Decides which examples come in which batch, and nothing else.
        averaged: Return the running average of the weights instead of the last ones.
        weights: Optional, one per example.
        groups: A column of group values, or a dict of columns, for a criterion that takes
            ``groups=``; others are not asked.
        sampler: Which examples make a batch, such as ``Stratified(512)``; takes the place of
            ``batch_size``. Without it, pass after pass in a new order.
        validation: Held-out data. After every pass the goal's metric is taken there, and the
            weights of the best pass are returned. Runs of more than 100 passes over small data
            are measured about 100 times, evenly spread, unless ``patience`` is given.
        patience: Stop after this many passes without a better metric. A criterion that fades over
            ``steps`` is cut short by it.
        checkpoint: A folder. After every measured pass all state is written there, and a run
            that was killed goes on from it and ends with the same numbers. What another run left
            there (other settings, data or initial weights) is refused.
        progress: Show a line on stderr.
        on_step: Called after each step with its number (0 is the first) and its loss.

    Returns:
        The averaged model (or ``model`` itself), its history and the median time of a step.

    Raises:
        ValueError: The data do not fit together, the goal cannot be measured on the validation
            data, or the checkpoint is of another run (:class:`OtherRun`).

    Examples:
        >>> from setpoint import Implicit, fnr_at_fpr
        >>> x, y = torch.randn(400, 3), torch.arange(400) % 4 == 0
        >>> model, criterion = torch.nn.Linear(3, 1), Implicit(fnr_at_fpr(0.1), steps=5)
        >>> fitted = fit(
        ...     model, criterion, x, y, steps=5, batch_size=100, learning_rate=0.1, seed=0
        ... )
        >>> criterion.thresholds.shape
        torch.Size([1])
    """
    sampler = sampler if sampler is not None else Shuffled(whole(batch_size, "batch_size", least=1))
    steps = whole(steps, "steps", least=1)
    _check(x, y, validation, patience)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    run = Run(
        state=RunState(model, optimizer, Averaged(model) if averaged else None, criterion),
        view=RankView.of(model, criterion, y),
        x=x,
        y=y,
        weights=weights,
        groups=_read_groups(groups, len(y)),
        validation=validation,
        patience=None if patience is None else whole(patience, "patience", least=1),
    )
    if checkpoint is not None:
        settings = {
            "patience": patience,
            "averaged": averaged,
            "learning_rate": learning_rate,
            "steps": steps,
            "seed": seed,
            "sampler": sampler,
        }
        run.resume(Path(checkpoint), settings)
    return run.train(sampler, steps, seed, ProgressLine(steps, shown=progress), on_step)


def _check(x: Tensor, y: Tensor, validation: Validation | None, patience: int | None) -> None:
    """Raise a ValueError if the data do not fit together or the goal cannot be measured on them."""
    if len(x) != len(y):
        raise ValueError(f"x and y must have one row per example; got {len(x)} and {len(y)}.")
    if patience is not None and validation is None:
        raise ValueError("patience needs validation=: there is nothing to be patient about.")
    if validation is not None:
        validation.check()


@dataclass
class Run:
    """A run in progress; :func:`fit` drives it.

    Attributes:
        state: What changes while it trains.
        view: This rank's view of the model, the criterion and the rows of all ranks.
        x: The features of this rank's examples; likewise labels, weights and group columns.
        validation: Held-out data, or None.
        patience: After how many passes without a better metric to stop, or None.
        folder: Where checkpoints are written, or None.
        recipe: What a checkpoint must have been made with to be resumed.
        progress: How far the run is.
        seconds: The time of each step since the run was started or resumed.
        losses: The loss of each step since the goal was last measured.
        pass_length: Steps in a pass over the data.
        note: The last validation metric, for the progress line.
        saved: When the last checkpoint was written.
    """

    state: RunState
    view: RankView
    x: Tensor
    y: Tensor
    weights: Tensor | None
    groups: Any
    validation: Validation | None
    patience: int | None
    folder: Path | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    seconds: list[float] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    pass_length: int = 1
    note: str = ""
    saved: float = -math.inf

    def resume(self, folder: Path, settings: dict[str, Any]) -> None:
        """Write checkpoints to ``folder``, and go on from the one that is there.

        Raises:
            OtherRun: It was made with other settings, data or initial weights.
        """
        held_out = None
        if self.validation is not None:
            settings["goal"] = self.validation.problem
            held_out = self.validation.parts
        rows = {"data": (self.x, self.y, self.weights, self.groups), "validation": held_out}
        self.folder = folder
        self.recipe = recipe_of(self.state, {"goal": "", **settings}, rows)
        found = values_of_ranks(load_checkpoint(folder) if rank_of() == 0 else None)[0]
        if found is None:
            return
        tensors, record = found
        if record.get("recipe") != self.recipe:
            was = {k: v for k, v in record.get("recipe", {}).items() if self.recipe.get(k) != v}
            raise OtherRun(
                f"The checkpoint in {folder} is of another run (it had {was}). "
                "Use another folder, or delete it."
            )
        self.state.restore(tensors)
        self.progress = Progress(**record["progress"])

    def train(
        self, sampler: Sampler, steps: int, seed: int, line: ProgressLine, on_step: OnStep | None
    ) -> Fitted:
        """Take all steps that are left, pass after pass; returns the best model there was."""
        labels, done = self.view.labels, self.progress
        self.pass_length = max(1, len(labels) // min(sampler.size, max(1, len(labels))))
        every = self.pass_length
        if self.patience is None:
            every *= -(-steps // (self.pass_length * _MOST_MEASURED))
        self.state.model.train()
        for step, batch in enumerate(sampler.draw(labels, steps=steps, seed=seed)):
            if done.finished or step < done.step:  # already done before a restart
                continue
            loss = self.step(batch)
            line.update(step + 1, self.note)
            if on_step is not None:
                on_step(step, loss)
            if (step + 1) % every == 0 or step + 1 == steps:
                self.end_of_pass(last=step + 1 == steps)
        line.close()
        model = self.state.current
        if self.state.best:
            model.load_state_dict(self.state.best)
        seconds = median(self.seconds) if self.seconds else float("nan")
        return Fitted(model.eval(), seconds, done.history, done.best, done.best_epoch)

    def step(self, batch: Batch) -> Tensor:
        """Train on one batch; returns its loss."""
        start = perf_counter()
        batch = self.view.local(batch)
        rows = batch.rows.to(self.x.device)
        scores = self.view.model(self.x[rows]).squeeze(-1)
        loss = self.view.criterion(scores, self.y[rows], **self._options(batch, rows))
        self.state.optimizer.zero_grad()
        loss.backward()
        self.state.optimizer.step()
        if self.state.average is not None:
            self.state.average.update()
        self.seconds.append(perf_counter() - start)
        self.losses.append(loss.detach())
        self.progress.step += 1
        return self.losses[-1]

    @cached_property
    def _keywords(self) -> frozenset[str]:
        """The arguments that the criterion takes."""
        criterion = self.state.criterion
        call = criterion.forward if isinstance(criterion, nn.Module) else criterion
        return frozenset(signature(call).parameters)

    def _options(self, batch: Batch, rows: Tensor) -> dict[str, Any]:
        """Weights and groups of a batch, under the keywords that the criterion takes.

        A criterion that takes ``resampling=`` gets the sampler's weights apart from those of the
        examples, any other their product.
        """
        options = {}
        if self.groups is not None and "groups" in self._keywords:
            options["groups"] = _take_groups(self.groups, batch.rows)
        own = None if self.weights is None else self.weights[rows].to(self.x.device)
        if batch.weights is not None:
            drawn = batch.weights.to(self.x.device)
            if "resampling" in self._keywords:
                options["resampling"] = drawn
            else:
                own = drawn if own is None else drawn * own
        if own is not None:
            options["weights"] = own
        return options

    def end_of_pass(self, *, last: bool) -> None:
        """Measure the goal, write history, keep the best weights, and checkpoint."""
        done, value, trouble = self.progress, None, ""
        epoch = -(-done.step // self.pass_length)
        if self.validation is not None:
            value, trouble = self.validation.metric(self.state.current)
            if self.validation.better(value, done.best):
                done.best, done.best_epoch = value, epoch
                current = self.state.current.state_dict()
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
        due = done.finished or perf_counter() - self.saved >= _SECONDS_LOST
        if self.folder is not None and rank_of() == 0 and due:
            record = {"recipe": self.recipe, "progress": vars(done)}
            save_checkpoint(self.folder, self.state.tensors(), record)
            self.saved = perf_counter()


@dataclass(frozen=True)
class RankView:
    """One rank's view of a run.

    Attributes:
        model: The model to call: wrapped in DistributedDataParallel if there are several ranks.
        criterion: The criterion to call: that of the global batch.
        labels: The labels of all ranks' rows, rank after rank.
        first: The position of this rank's first row among them.
        count: How many rows this rank has.
    """

    model: nn.Module
    criterion: Any
    labels: Tensor
    first: int
    count: int

    @classmethod
    def of(cls, model: nn.Module, criterion: Any, labels: Tensor) -> RankView:
        """The view of this rank, which has ``labels``, in the process group (if there is one)."""
        if workers() == 1:
            return cls(model, criterion, labels, 0, len(labels))
        found, sizes, _ = gather_rows({"labels": labels})
        wrapped = DistributedDataParallel(model)
        called = criterion if isinstance(criterion, BatchCriterion) else GlobalBatch(criterion)
        all_labels = torch.as_tensor(found["labels"])
        first = sum(sizes[: rank_of()])
        return cls(wrapped, called.attach(wrapped), all_labels, first, len(labels))

    def local(self, batch: Batch) -> Batch:
        """The part of a batch that this rank has, by positions among its own rows."""
        if self.count == len(self.labels):
            return batch
        here = (batch.rows >= self.first) & (batch.rows < self.first + self.count)
        weights = None if batch.weights is None else batch.weights[here]
        return Batch(batch.rows[here] - self.first, weights)


def _read_groups(groups: Any, count: int) -> Any:
    """Group columns that rows can be taken from: a column, or a dict of them, or None.

    Raises:
        ValueError: A column has not one value per example.
    """
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {name: _read_groups(column, count) for name, column in groups.items()}
    column = groups if isinstance(groups, Tensor) else np.asarray(groups)
    if column.shape != (count,):
        shape = tuple(column.shape)
        raise ValueError(f"groups must have one value per example, ({count},); got {shape}.")
    return column


def _take_groups(groups: Any, rows: Tensor) -> Any:
    """The group values of some rows."""
    if isinstance(groups, Mapping):
        return {name: _take_groups(column, rows) for name, column in groups.items()}
    return groups[rows.to(groups.device) if isinstance(groups, Tensor) else rows.cpu().numpy()]


_WIDTH = 30
_EVERY = 0.1  # seconds between two drawings


class ProgressLine:
    """A progress bar: one line on stderr that is drawn over itself.

    Args:
        total: The number of steps.
        shown: False: draw nothing.
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self.total, self.shown = total, shown
        self._start = perf_counter()
        self._drawn = -_EVERY

    def update(self, done: int, note: str = "") -> None:
        """Draw the bar, unless it was drawn less than 0.1 seconds ago."""
        elapsed = perf_counter() - self._start
        if not self.shown or (elapsed - self._drawn < _EVERY and done < self.total):
            return
        self._drawn = elapsed
        filled = round(_WIDTH * done / self.total)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        sys.stderr.write(f"\r{bar} {done:,}/{self.total:,} steps, {elapsed:.0f} s  {note}\x1b[K")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line of the progress bar, if one was shown."""
        if self.shown:
            sys.stderr.write("\n")
