"""The models of a run: every kind that was asked for, trained with checkpoints, as one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from setpoint.distributed import rank_of, values_of_ranks
from setpoint.problems import Problem
from setpoint.runs.model import build_model
from setpoint.runs.recipe import Recipe, groups_of
from setpoint.solvers import methods_named
from setpoint.tables.training_file import DealtRows, Shares, TablePart
from setpoint.train import LEARNING_RATES, STEPS, Best, OtherRun, Validation, fit_best, steps_for
from setpoint.train.boosted_trees import fit_trees
from setpoint.train.cross_fitting import FOLDS, STEPS_OF_FOLD, cross_fit, folds_for, pays
from setpoint.train.stacking import STACKED, Stacked, stack, why_no_trees

_RESUMED = "Going on where a run that was stopped has left off."
_LEARNED = ("train", "validation")
CROSSED = (
    f"The model is cross-fitted: {FOLDS} of each kind, each trained on all folds but one. Scores "
    "of train and validation rows are by models that have not seen them."
)
"""For the report of a run with few rows."""


@dataclass(frozen=True)
class Fitting:
    """Trains the models of a recipe; writes nothing but checkpoints.

    Args:
        recipe: What to train.
        problem: Its goal, with classes by number.
        outputs: The scores of a row: 1, or one for each class.
        unfinished: The folder of checkpoints, with one for each recipe.
        tell: Called with what happens, in sentences.
        progress: Whether to draw a progress line.
    """

    recipe: Recipe
    problem: Problem
    outputs: int
    unfinished: Path
    tell: Callable[[str], None]
    progress: bool

    def fit(
        self, parts: dict[str, TablePart], shares: Shares | DealtRows
    ) -> tuple[str, Best, NDArray[Any] | None]:
        """Train every model of the recipe.

        Returns:
            What the model is called; the model and its history; and if it is cross-fitted, the
            scores of the rows to learn from, by models that have not seen them.
        """
        recipe, auto = self.recipe, self.recipe.model == "auto"
        if auto and (reason := why_no_trees(recipe.method)):
            self.tell(f"Without boosted trees: {reason}.")
        clusters, times = shares.known(*_LEARNED)
        if auto and pays(sum(len(parts[name]) for name in _LEARNED), times):
            rows = self._rows(TablePart.joined([parts[name] for name in _LEARNED]))
            folds = folds_for(rows, clusters, recipe.seed)
            if folds is not None:
                return self._cross_fit(rows, folds)
        train, judge = (self._rows(parts[name]) for name in _LEARNED)
        found = {}
        for one in map(recipe.of_model, recipe.models):
            self.tell(_opening(one, train))
            found[one.model] = self._fit(one, train, judge)
        name, best = stack(found, judge)
        if auto:
            self._tell_members(best)
        return name, best, None

    def baseline(self, name: str, parts: dict[str, TablePart]) -> Best:
        """The same model with cross-entropy."""
        plain = replace(self.recipe, model=name, method="cross_entropy")
        return self._fit(plain, *(self._rows(parts[part]) for part in _LEARNED))

    def _cross_fit(
        self, rows: Validation, folds: NDArray[Any]
    ) -> tuple[str, Best, NDArray[Any] | None]:
        names = ", ".join(self.recipe.models)
        self.tell(
            f"Training {names} with {self.recipe.method}, each on all but one of {FOLDS} folds of "
            f"{len(rows.y):,} rows: scores by models that have not seen a row choose."
        )
        found = cross_fit(self.recipe.models, rows, folds, self._fit_fold)
        self._tell_members(found.best)
        return STACKED, found.best, found.scores.float().numpy()

    def _fit_fold(self, kind: str, train: Validation, judge: Validation, fold: int) -> Best:
        """One kind of model on all folds but one, with checkpoints of its own."""
        return self._fit(replace(self.recipe.of_model(kind), fold=fold), train, judge)

    def _tell_members(self, best: Best) -> None:
        kept = best.model.members if isinstance(best.model, Stacked) else [best.name]
        names = dict.fromkeys(name.split("_")[0] for name in kept)
        self.tell(f"Validation rows give a weight to {', '.join(names)}.")

    def _rows(self, part: TablePart) -> Validation:
        """Rows to learn from or to choose by, with the goal."""
        groups = groups_of(self.problem, self.recipe.group, part.groups)
        x, y = torch.from_numpy(part.x), torch.from_numpy(part.y)
        return Validation(self.problem, x, y, groups=groups)

    def _fit(self, recipe: Recipe, train: Validation, judge: Validation) -> Best:
        """The model of the pass that is best by the goal's own metric, and the history.

        A run that was killed goes on from its last pass and ends with the same numbers.
        """
        folder = self.unfinished / recipe.key
        if not folder.exists():
            return self._fit_in(folder, recipe, train, judge)
        self.tell(_RESUMED)
        try:
            return self._fit_in(folder, recipe, train, judge)
        except OtherRun:
            kept = _free_name(folder)
            self.tell(f"An unfinished run of other data is in the way; it is kept as {kept}.")
            if rank_of() == 0:
                os.rename(folder, kept)
            return self._fit_in(folder, recipe, train, judge)

    def _fit_in(self, folder: Path, recipe: Recipe, train: Validation, judge: Validation) -> Best:
        if recipe.model == "boosted":
            how: dict[str, Any] = {"seed": recipe.seed, "classes": self.outputs}
            return fit_trees(train.x, train.y, validation=judge, **how)
        columns = train.x.shape[1]
        return fit_best(
            build_model(recipe.model, columns, recipe.hidden, recipe.seed, self.outputs),
            methods_named(recipe.method, self.problem.kind),
            train.x,
            train.y,
            steps=_steps(recipe, train),
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate or LEARNING_RATES[recipe.model],
            seed=recipe.seed,
            groups=train.groups,
            validation=judge,
            checkpoint=folder,
            progress=self.progress,
        )


def _steps(recipe: Recipe, train: Validation) -> int:
    """The number of training steps, by the rows of all ranks."""
    rows = sum(values_of_ranks(len(train.y)))
    fewest = STEPS if recipe.fold is None else STEPS_OF_FOLD
    return steps_for(rows, recipe.batch_size, recipe.epochs, fewest=fewest)


def _opening(recipe: Recipe, train: Validation) -> str:
    """What is about to be trained, as a sentence."""
    if recipe.model == "boosted":
        return "Growing boosted trees by log-loss."
    return f"Training {recipe.model} with {recipe.method}: {_steps(recipe, train):,} steps."


def _free_name(folder: Path) -> Path:
    kept = (folder.with_name(f"{folder.name}.kept-{n}") for n in range(1, 10**6))
    return next(path for path in kept if not path.exists())
