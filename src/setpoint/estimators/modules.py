"""The models a name stands for, and standardisation as their first layer."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.train.named import LEARNING_RATES, network

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


class Scores(nn.Module):
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
) -> OneScore | Scores:
    """An untrained model for rows like ``x``.

    Named models compute in the precision of the data, as scikit-learn's own networks do; a module
    that is given keeps its own.
    """
    built = build(model, x.shape[1], outputs)
    if isinstance(model, str):
        built = built.to(torch.from_numpy(x[:0]).dtype)
    dtype = next((p.dtype for p in built.parameters()), torch.float32)
    first = Standardize(x, weights, dtype)
    return OneScore(first, built) if outputs == 1 else Scores(first, built, outputs)


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
