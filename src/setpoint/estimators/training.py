"""Train the methods asked for from one start, and keep the best on validation data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setpoint._checks import positive, whole
from setpoint.estimators.modules import assemble, rate_of
from setpoint.problems import Problem
from setpoint.solvers import methods_named
from setpoint.train import Validation, fit_best
from setpoint.train.groups import of_rows
from setpoint.train.named import steps_for
from setpoint.train.state import History

Array = NDArray[Any]


@dataclass(frozen=True)
class Trained:
    """The winner, and what was seen on the way."""

    method: str
    module: nn.Module
    histories: dict[str, History]

    @property
    def history(self) -> History:
        """The winner's."""
        return self.histories[self.method]


@dataclass
class Portfolio:
    """One or several methods with the same budget, data, start and batches."""

    problem: Problem
    model: str | nn.Module
    method: str
    shown: bool = False
    epochs: int | str = "auto"
    batch_size: int = 512
    learning_rate: float = 0.03
    outputs: int = 1

    def budget(self, epochs: int | str, batch_size: int, learning_rate: float | str) -> None:
        """Check and set what every method may use."""
        self.epochs = epochs if epochs == "auto" else whole(epochs, "epochs", least=1)
        self.batch_size = whole(batch_size, "batch_size", least=1)
        if isinstance(learning_rate, str) and learning_rate != "auto":
            raise ValueError(f"learning_rate must be a number or 'auto'; got {learning_rate!r}.")
        self.learning_rate = positive(rate_of(self.model, learning_rate), "learning_rate")

    def steps(self, rows: int) -> int:
        """How many batches to train on."""
        passes = None if isinstance(self.epochs, str) else self.epochs
        return steps_for(rows, self.batch_size, passes)

    def train(
        self,
        x: Array,
        labels: NDArray[np.int64],
        weights: Array | None,
        splits: dict[str, NDArray[np.int64]],
        seed: int,
        device: str,
        groups: Any = None,
    ) -> Trained:
        """Train every method, and keep the one whose best pass is best."""
        parts = {
            name: _tensors(x, labels, weights, splits[name], device)
            for name in ("train", "validation")
        }
        rows = splits["train"]
        counts = None if weights is None else weights[rows]
        held_out = (*parts["validation"], of_rows(groups, splits["validation"]))
        validation = Validation(self.problem, *held_out)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = assemble(self.model, x[rows], counts, self.outputs).to(device)
            x_train, y, given = parts["train"]
            best = fit_best(
                module,
                methods_named(self.method, self.problem.kind),
                x_train,
                y,
                validation=validation,
                steps=self.steps(len(y)),
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                seed=seed,
                weights=given,
                groups=of_rows(groups, rows),
                progress=self.shown,
            )
        histories = {name: one.history for name, one in best.fitted.items()}
        return Trained(best.name, best.model, histories)


def _tensors(x: Array, labels: Array, weights: Array | None, rows: Array, device: str) -> Any:
    counts = None if weights is None else torch.as_tensor(weights[rows], device=device)
    return (
        torch.as_tensor(x[rows], device=device),
        torch.as_tensor(labels[rows], device=device),
        counts,
    )
