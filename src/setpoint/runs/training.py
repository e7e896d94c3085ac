"""Train on the parts of a file and certify: what ``setpoint train`` does between its two ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.problems import Problem
from setpoint.runs.model import build_model
from setpoint.solvers import Implicit, cross_entropy, focal
from setpoint.tables.parts import Part
from setpoint.train import fit
from setpoint.train.samplers import Stratified
from setpoint.train.validation import Validation, score

HIDDEN, RATES = 64, {"linear": 0.03, "mlp": 0.01}
STEPS, LEAST_EPOCHS = 1500, 10  # without --epochs


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

    def steps(self, rows: int) -> int:
        """How many batches the epochs make."""
        each = max(1, rows // self.batch_size)
        return each * (self.epochs or max(LEAST_EPOCHS, -(-STEPS // each)))


@dataclass(frozen=True)
class Trained:
    """A model and its history."""

    model: nn.Module
    history: list[dict[str, Any]]


def train_model(
    recipe: Recipe, train: Part, validation: Part, *, progress: bool = False
) -> Trained:
    """Train one model; the pass that is best by the goal's own metric is kept."""
    steps = recipe.steps(len(train))
    judge = Validation(
        recipe.problem, torch.from_numpy(validation.x), torch.from_numpy(validation.y)
    )
    fitted = fit(
        build_model(recipe.model, train.x.shape[1], recipe.hidden, recipe.seed),
        _criterion(recipe.method, recipe.problem, steps),
        torch.from_numpy(train.x),
        torch.from_numpy(train.y),
        steps=steps,
        batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        sampler=Stratified(recipe.batch_size),
        validation=judge,
        progress=progress,
    )
    return Trained(fitted.model, [dict(entry) for entry in fitted.history])


def scores_of(model: nn.Module, part: Part) -> NDArray[np.float32]:
    """The scores of a part, in the precision that decisions are made in."""
    found: Tensor = score(model, torch.from_numpy(part.x))
    return found.numpy().astype(np.float32, copy=False)


def _criterion(method: str, problem: Problem, steps: int) -> Callable[..., Tensor]:
    if method == "implicit":
        return Implicit(problem, steps=steps)
    return {"focal": focal, "cross_entropy": cross_entropy}[method]
