"""The models a name stands for, and standardisation as their first layer."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint._checks import positive, whole
from setpoint.problems import Problem
from setpoint.solvers import methods_named
from setpoint.train import Validation, fit_best
from setpoint.train.checkpoints import History
from setpoint.train.loop import group_rows
from setpoint.train.networks import LEARNING_RATES, network, steps_for

OWN_MODULE_RATE = 0.001
"""Adam's usual rate, for a network we know nothing about."""


class Standardize(nn.Module):
    """Give every column mean 0 and deviation 1 by what the training rows showed.

    It computes in float64 (a column of time stamps has no digits left in float32) and passes on
    the precision of the network behind it. A constant column becomes 0.

    Args:
        x: The training rows ``[n, d]``.
        weights: What each row counts for, or None.
        dtype: The precision to pass on.
    """

    centre: Tensor
    deviation: Tensor

    def __init__(
        self,
        x: NDArray[np.floating],
        weights: NDArray[np.float64] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        centre = np.average(x.astype(np.float64), axis=0, weights=weights)
        variance = np.average((x - centre) ** 2, axis=0, weights=weights)
        # rounding alone gives a constant column a deviation of about 1e-16 times its value
        constant = np.sqrt(variance) <= 1e-12 * np.abs(centre)
        self.register_buffer("centre", torch.from_numpy(centre))
        deviation = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
        self.register_buffer("deviation", torch.from_numpy(deviation))

    def forward(self, x: Tensor) -> Tensor:
        """Rows ``[n, d]`` of any precision, standardised."""
        return ((x.double() - self.centre) / self.deviation).to(self.dtype)


class ScorePerClass(nn.Module):
    """Standardise, and hand back one logit a class: ``[n, d]`` to ``[n, K]``."""

    def __init__(self, standardize: Standardize, network: nn.Module, outputs: int) -> None:
        super().__init__()
        self.standardize, self.network, self.outputs = standardize, network, outputs

    def forward(self, x: Tensor) -> Tensor:
        """The logits of raw rows."""
        scores: Tensor = self.network(self.standardize(x))
        if scores.shape != (len(x), self.outputs):
            raise ValueError(
                f"model must give one score for each of {self.outputs} classes, "
                f"[n, {self.outputs}]; it gave {tuple(scores.shape)} for {len(x)} rows."
            )
        return scores


class OneScore(nn.Module):
    """Standardise, score, and hand back one logit a row: ``[n, d]`` to ``[n]``."""

    def __init__(self, standardize: Standardize, network: nn.Module) -> None:
        super().__init__()
        self.standardize, self.network = standardize, network

    def forward(self, x: Tensor) -> Tensor:
        """The logits of raw rows."""
        scores: Tensor = self.network(self.standardize(x))
        if scores.numel() != len(x):
            raise ValueError(
                "model must give one score a row, [n] or [n, 1]; "
                f"it gave {tuple(scores.shape)} for {len(x)} rows."
            )
        return scores.reshape(-1)


def assemble(
    model: str | nn.Module,
    x: NDArray[np.floating],
    weights: NDArray[np.float64] | None,
    outputs: int = 1,
) -> OneScore | ScorePerClass:
    """An untrained model for rows like ``x``.

    Named models compute in the precision of the data, as scikit-learn's own networks do; a module
    that is given keeps its own.
    """
    built = build(model, x.shape[1], outputs)
    if isinstance(model, str):
        built = built.to(torch.from_numpy(x[:0]).dtype)
    dtype = next((p.dtype for p in built.parameters()), torch.float32)
    first = Standardize(x, weights, dtype)
    return OneScore(first, built) if outputs == 1 else ScorePerClass(first, built, outputs)


def build(model: str | nn.Module, columns: int, outputs: int = 1) -> nn.Module:
    """The network of a name, or a copy of the one that is given."""
    if isinstance(model, nn.Module):
        return deepcopy(model)
    if model not in LEARNING_RATES:
        raise ValueError(f"model must be 'linear', 'mlp' or an nn.Module; got {model!r}.")
    return network(model, columns, outputs=outputs)


def rate_of(model: str | nn.Module, given: float | str) -> float:
    """Adam's learning rate: as given, or the one that suits the model with every method."""
    if given != "auto":
        return float(given)
    if isinstance(model, str) and model not in LEARNING_RATES:
        build(model, 1)  # says what is wrong with the name
    return LEARNING_RATES[model] if isinstance(model, str) else OWN_MODULE_RATE


# ------------------------------------------------------------------------------------------------
# Train the methods asked for from one start, and keep the best on validation data.


Array = NDArray[Any]


@dataclass(frozen=True)
class TrainedMethod:
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
    ) -> TrainedMethod:
        """Train every method, and keep the one whose best pass is best."""
        parts = {
            name: _tensors(x, labels, weights, splits[name], device)
            for name in ("train", "validation")
        }
        rows = splits["train"]
        counts = None if weights is None else weights[rows]
        held_out = (*parts["validation"], group_rows(groups, splits["validation"]))
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
                groups=group_rows(groups, rows),
                progress=self.shown,
            )
        histories = {name: one.history for name, one in best.fitted.items()}
        return TrainedMethod(best.name, best.model, histories)


def _tensors(x: Array, labels: Array, weights: Array | None, rows: Array, device: str) -> Any:
    counts = None if weights is None else torch.as_tensor(weights[rows], device=device)
    return (
        torch.as_tensor(x[rows], device=device),
        torch.as_tensor(labels[rows], device=device),
        counts,
    )
