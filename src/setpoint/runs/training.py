"""Train on the parts of a file: what ``setpoint train`` does between reading and certifying."""

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

from setpoint.distributed import gather_rows, rank_of, workers
from setpoint.problems import Problem
from setpoint.runs.model import build_model
from setpoint.solvers import methods_named
from setpoint.tables import TableError, need_column, open_table
from setpoint.tables.scores import RowShare
from setpoint.tables.source import Source, listed, quoted
from setpoint.tables.training_file import Part, count_rows
from setpoint.train import OtherRun, fit_best
from setpoint.train.networks import steps_for
from setpoint.train.ranks import added_up, from_first
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


# ------------------------------------------------------------------------------------------------
# A file read by several processes: each a part of the rows, all the same look at it.


Found = TypeVar("Found")


def by_first(look: Callable[[], Found]) -> Found:
    """What rank 0 finds, on all ranks; what it cannot use is an error on all of them."""
    if workers() == 1:
        return look()
    found: Found | None = None
    trouble = None
    if rank_of() == 0:
        try:
            found = look()
        except (OSError, ValueError) as error:
            trouble = error
    told, answer = from_first((None if trouble is None else str(trouble), found))
    if trouble is not None:
        raise trouble
    if told is not None:
        raise ValueError(f"rank {rank_of()} stops with rank 0: {told}")
    result: Found = answer
    return result


def own_rows(source: Source, rows: int) -> RowShare:
    """The stretch of a table of so many rows that this rank reads."""
    size, rank = workers(), rank_of()
    return RowShare(source, rank * rows // size, (rank + 1) * rows // size)


def own_share(file: Path, label: str) -> Source:
    """This rank's stretch of a table whose length nobody knows yet."""
    source = open_table(file)
    if workers() == 1:
        return source
    return own_rows(source, by_first(lambda: count_rows(source, label)))


def whole(part: Part, scores: Any = None) -> tuple[Any, Any, Any]:
    """Scores, labels and groups of a part from all ranks, in the order of the file: each once."""
    found, _, _ = gather_rows({"scores": scores, "y": part.y, "groups": part.groups})
    return found["scores"], found["y"], found["groups"]


# ------------------------------------------------------------------------------------------------
# Whether the parts of a file hold enough to learn from, and to judge by.


LEAST = 10  # rows of each of two classes in each part, below which nothing can be learned or said
LEAST_OF_SEVERAL = 3  # rows of each of several classes; what is said of so few is said with them


def check_columns(file: Path, label: str, group: str | None, test: Path | None) -> None:
    """Told before any row is read: files that are not there, and columns that they lack."""
    for path in (file, test):
        if path is not None:
            source = open_table(path)
            need_column(source, label, "--label")
            if group is not None:
                need_column(source, group, "--group")


def check_both(file: Path, part: str, labels: Any) -> None:
    """Both classes must be there."""
    positives = int(labels.sum())
    few = min(positives, len(labels) - positives)
    if few < LEAST:
        rare = "positives" if positives == few else "negatives"
        problem = f"too few rows: the {part} part has {few} {rare}, and {LEAST} is the least"
        raise TableError(file, f"{problem} that anything can be said about.")


def check_several(file: Path, column: str, part: str, labels: Any, names: tuple[str, ...]) -> None:
    """Every class must be there."""
    counts = np.bincount(labels, minlength=len(names))
    rare = int(np.argmin(counts))
    if counts[rare] < LEAST_OF_SEVERAL:
        problem = f"too few rows: the {part} part has {counts[rare]} of {quoted(names[rare])}, and "
        problem += f"{LEAST_OF_SEVERAL} is the least. Join rare classes, or remove their rows."
        raise TableError(file, problem, column=column)


def check_groups(file: Path, problem: Problem, column: str | None, part: str, groups: Any) -> None:
    """Every group that the goal names must be there."""
    asked = {value for where in problem.slices for _, value in where}
    there = set() if groups is None else set(groups.tolist())
    for value in asked - there:
        wrong = f"the goal asks about {quoted(value)}, which the {part} part does not have; "
        wrong += f"it has {listed(sorted(there))}."
        raise TableError(file, wrong, column=column)
