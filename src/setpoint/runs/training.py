"""Training on the parts of a file, on one process or on the ranks of a launcher.

Each rank reads a range of the rows; rank 0 alone surveys the file, and tells the others.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.distributed import gather_rows, rank_of, values_of_ranks, workers
from setpoint.problems import Problem
from setpoint.runs.model import build_model
from setpoint.solvers import methods_named
from setpoint.tables import RowRange, TableSource, open_table
from setpoint.tables.training_file import TablePart, count_rows
from setpoint.train import (
    HIDDEN,
    LEARNING_RATES,
    OtherRun,
    Validation,
    fit_best,
    score,
    steps_for,
)

_RESUMED = "Going on where a run that was stopped has left off."
_ANEW = "An unfinished run of other settings or data is in the way; it goes, and training starts."
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class RunRecipe:
    """How to train: everything that decides the numbers, beside the data."""

    problem: Problem
    method: str
    model: str
    epochs: int | None
    batch_size: int
    learning_rate: float | None
    seed: int
    group: str | None = None
    outputs: int = 1

    @property
    def hidden(self) -> int:
        """Units of the hidden layer; 0 without one."""
        return HIDDEN if self.model == "mlp" else 0

    def steps(self, train: TablePart) -> int:
        """How many batches the epochs make, of the rows of all ranks."""
        return steps_for(sum(values_of_ranks(len(train))), self.batch_size, self.epochs)


@dataclass(frozen=True)
class Watch:
    """Where unfinished training is kept, and what is told about it."""

    checkpoint: Path | None = None
    tell: Callable[[str], None] = lambda text: None
    progress: bool = False


@dataclass(frozen=True)
class Trained:
    """A model and its history."""

    model: nn.Module
    history: list[dict[str, Any]]


def train_model(
    recipe: RunRecipe, train: TablePart, validation: TablePart, watch: Watch
) -> Trained:
    """Train one model; the pass that is best by the goal's own metric is kept.

    A run that was killed goes on from its last pass and ends with the same numbers.
    """
    folder = None if watch.checkpoint is None else watch.checkpoint / recipe.method
    if folder is not None and folder.exists():
        watch.tell(_RESUMED)
        try:
            return _train(recipe, train, validation, watch, folder)
        except OtherRun:
            watch.tell(_ANEW)
            if rank_of() == 0:
                shutil.rmtree(folder)
    return _train(recipe, train, validation, watch, folder)


def _train(
    recipe: RunRecipe, train: TablePart, validation: TablePart, watch: Watch, folder: Path | None
) -> Trained:
    judge = Validation(
        recipe.problem,
        torch.from_numpy(validation.x),
        torch.from_numpy(validation.y),
        groups=groups_of(recipe.problem, recipe.group, validation.groups),
    )
    best = fit_best(
        build_model(recipe.model, train.x.shape[1], recipe.hidden, recipe.seed, recipe.outputs),
        methods_named(recipe.method, recipe.problem.kind),
        torch.from_numpy(train.x),
        torch.from_numpy(train.y),
        steps=recipe.steps(train),
        batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate or LEARNING_RATES[recipe.model],
        seed=recipe.seed,
        groups=groups_of(recipe.problem, recipe.group, train.groups),
        validation=judge,
        checkpoint=folder,
        progress=watch.progress,
    )
    history = best.fitted[best.name].history
    return Trained(best.model, [{**entry, "method": best.name} for entry in history])


def groups_of(problem: Problem, group: str | None, column: Any) -> dict[str, Any] | None:
    """The group column by its name, or None if the goal is about no group."""
    return {group: column} if any(problem.slices) and group is not None else None


def part_scores(model: nn.Module, part: TablePart) -> NDArray[np.float32]:
    """The scores of a part, in the precision that decisions are made in."""
    found: Tensor = score(model, torch.from_numpy(part.x))
    return found.numpy().astype(np.float32, copy=False)


def on_first_rank(look: Callable[[], _Found]) -> _Found:
    """What ``look`` returns on rank 0, on all ranks; an error on rank 0 is one on all ranks."""
    if workers() == 1:
        return look()
    found: _Found | None = None
    trouble = None
    if rank_of() == 0:
        try:
            found = look()
        except (OSError, ValueError) as error:
            trouble = error
    told, answer = values_of_ranks((None if trouble is None else str(trouble), found))[0]
    if trouble is not None:
        raise trouble
    if told is not None:
        raise ValueError(f"rank {rank_of()} stops with rank 0: {told}")
    result: _Found = answer
    return result


def rank_rows(file: Path, rows: int) -> RowRange:
    """The range of a table of ``rows`` rows that this rank reads."""
    size, rank = workers(), rank_of()
    return RowRange(open_table(file), rank * rows // size, (rank + 1) * rows // size)


def rank_rows_of_unknown(file: Path, label: str) -> TableSource:
    """The range that this rank reads of a table whose length is not known yet."""
    source = open_table(file)
    if workers() == 1:
        return source
    return rank_rows(file, on_first_rank(lambda: count_rows(source, label)))


def all_rows(part: TablePart, scores: Any = None) -> tuple[Any, Any, Any]:
    """Scores, labels and groups of a part from all ranks, in the order of the file."""
    found, _, _ = gather_rows({"scores": scores, "y": part.y, "groups": part.groups})
    return found["scores"], found["y"], found["groups"]
