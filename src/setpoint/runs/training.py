"""Train on the parts of a file: what ``setpoint train`` does between reading and certifying."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.distributed import rank_of
from setpoint.problems import Problem
from setpoint.runs.model import build_model
from setpoint.solvers import methods_named
from setpoint.tables.parts import Part
from setpoint.train import OtherRun, fit_best
from setpoint.train.named import steps_for
from setpoint.train.team import added_up
from setpoint.train.validation import Validation, score

STOPPED = "Going on where a run that was stopped has left off."
ANEW = "An unfinished run of other settings or data is in the way; it goes, and training starts."


@dataclass(frozen=True)
class Recipe:
    """How to train: everything that decides the numbers, beside the data."""

    problem: Problem
    method: str
    model: str
    hidden: int
    epochs: int | None
    batch_size: int
    learning_rate: float
    seed: int
    group: str | None = None
    outputs: int = 1

    def steps(self, train: Part) -> int:
        """How many batches the epochs make, of the rows of all processes."""
        return steps_for(added_up(len(train)), self.batch_size, self.epochs)


@dataclass(frozen=True)
class Watch:
    """Where unfinished training is kept, and who is told about it."""

    checkpoint: Path | None = None
    tell: Callable[[str], None] = lambda text: None
    progress: bool = False


@dataclass(frozen=True)
class Trained:
    """A model and its history."""

    model: nn.Module
    history: list[dict[str, Any]]


def train_model(recipe: Recipe, train: Part, validation: Part, watch: Watch) -> Trained:
    """Train one model; the pass that is best by the goal's own metric is kept.

    A run that was killed goes on from its last pass and ends with the same numbers.
    """
    folder = None if watch.checkpoint is None else watch.checkpoint / recipe.method
    if folder is not None and folder.exists():
        watch.tell(STOPPED)
        try:
            return _train(recipe, train, validation, watch, folder)
        except OtherRun:
            watch.tell(ANEW)
            if rank_of() == 0:
                shutil.rmtree(folder)
    return _train(recipe, train, validation, watch, folder)


def _train(
    recipe: Recipe, train: Part, validation: Part, watch: Watch, folder: Path | None
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
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        groups=groups_of(recipe.problem, recipe.group, train.groups),
        validation=judge,
        checkpoint=folder,
        progress=watch.progress,
    )
    history = best.fitted[best.name].history
    return Trained(best.model, [{**entry, "method": best.name} for entry in history])


def groups_of(problem: Problem, group: str | None, column: Any) -> dict[str, Any] | None:
    """The group column, by its name, if the goal looks at one."""
    looks = any(where for where in problem.slices)
    return {group: column} if looks and group is not None else None


def scores_of(model: nn.Module, part: Part) -> NDArray[np.float32]:
    """The scores of a part, in the precision that decisions are made in."""
    found: Tensor = score(model, torch.from_numpy(part.x))
    return found.numpy().astype(np.float32, copy=False)
