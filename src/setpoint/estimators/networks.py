"""The networks of the estimators: features are standardised inside, raw rows go in."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint._checks import positive, whole
from setpoint.estimators.inputs import AnyArray, Examples, GroupColumns
from setpoint.train import LEARNING_RATES, network, score
from setpoint.train.boosted_trees import MODELS

_MODULE_RATE = 0.001
"""Adam's usual learning rate, for a network that the user made."""


class StandardizedNetwork(nn.Module):
    """Standardise raw rows, then score them: ``[n, d]`` to ``[n]``, or to ``[n, outputs]``.

    Every column gets mean 0 and deviation 1 as measured on the training rows, in float64 (a column
    of time stamps has no digits left in float32); a constant column becomes 0. Before, it is
    multiplied by a power of two, which is exact: squares of 1e300 or 1e-300 are no numbers. The
    network behind it gets its own precision.

    Args:
        network: Gives one score per row and output.
        x: The training rows ``[n, d]``.
        weights: The weight of each row, or None.
        outputs: How many scores a row has.
    """

    scale: Tensor
    centre: Tensor
    deviation: Tensor

    def __init__(
        self,
        network: nn.Module,
        x: NDArray[np.floating],
        weights: NDArray[np.float64] | None = None,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        self.network, self.outputs = network, outputs
        self.dtype = next((p.dtype for p in network.parameters()), torch.float32)
        _, exponents = np.frexp(np.abs(x).max(axis=0, initial=0.0).astype(np.float64))
        scale = 2.0 ** -np.clip(exponents, -1000, 1000).astype(np.float64)
        x = x.astype(np.float64) * scale
        centre = np.average(x, axis=0, weights=weights)
        variance = np.average((x - centre) ** 2, axis=0, weights=weights)
        # rounding alone gives a constant column a deviation of about 1e-16 times its value
        constant = np.sqrt(variance) <= 1e-12 * np.abs(centre)
        deviation = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
        self.register_buffer("scale", torch.from_numpy(scale))
        self.register_buffer("centre", torch.from_numpy(centre))
        self.register_buffer("deviation", torch.from_numpy(deviation))

    def forward(self, x: Tensor) -> Tensor:
        """The logits of raw rows.

        Raises:
            ValueError: The network's output has another shape.
        """
        standardized = (x.double() * self.scale - self.centre) / self.deviation
        rows = x.shape[0]  # ``len(x)`` would be a constant of an exported graph
        scores: Tensor = self.network(standardized.to(self.dtype))
        if self.outputs == 1:
            if scores.numel() != rows:
                raise ValueError(
                    "model must give one score per row, [n] or [n, 1]; "
                    f"it gave {tuple(scores.shape)} for {rows} rows."
                )
            return scores.reshape(-1)
        if scores.shape != (rows, self.outputs):
            raise ValueError(
                f"model must give one score for each of {self.outputs} classes, "
                f"[n, {self.outputs}]; it gave {tuple(scores.shape)} for {rows} rows."
            )
        return scores


def build(
    model: str | nn.Module,
    x: NDArray[np.floating],
    weights: NDArray[np.float64] | None,
    outputs: int = 1,
) -> StandardizedNetwork:
    """An untrained network for rows like ``x``.

    Named models compute in the precision of the data, as scikit-learn's own networks do; a module
    that is given is copied and keeps its own.
    """
    if isinstance(model, nn.Module):
        inner = deepcopy(model)
    else:
        inner = network(model, x.shape[1], outputs=outputs).to(torch.from_numpy(x[:0]).dtype)
    return StandardizedNetwork(inner, x, weights, outputs)


def read_learning_rate(model: str | nn.Module, given: float | str) -> float:
    """Adam's learning rate: as given, or the one that suits the model with every method.

    Raises:
        ValueError: It is not a positive number or "auto", or no model has this name.
    """
    if isinstance(model, str) and model not in LEARNING_RATES:
        known = ", ".join(map(repr, (*MODELS, "auto")))
        raise ValueError(f"model must be {known} or an nn.Module; got {model!r}.")
    if given == "auto":
        return LEARNING_RATES[model] if isinstance(model, str) else _MODULE_RATE
    if isinstance(given, str):
        raise ValueError(f"learning_rate must be a number or 'auto'; got {given!r}.")
    return positive(given, "learning_rate")


def read_epochs(epochs: int | str) -> int | None:
    """The number of passes over the training rows, or None for "auto"."""
    if epochs == "auto":
        return None
    if isinstance(epochs, str):
        raise ValueError(f"epochs must be a number or 'auto'; got {epochs!r}.")
    return whole(epochs, "epochs", least=1)


def check_device(device: Any) -> None:
    """Raise a ValueError if this torch cannot compute on the device."""
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be a device of torch, such as 'cpu' or 'cuda'; got {device!r}."
        ) from None
    backend = getattr(torch, kind, None)
    if kind != "cpu" and backend is not None and not backend.is_available():
        raise ValueError(
            f"device={device!r}: torch {torch.__version__} finds no such device here. Train with "
            "device='cpu', or install a build of torch for it (https://pytorch.org/get-started)."
        )


def on_device(examples: Examples, device: str) -> tuple[Any, Any, Any, GroupColumns | None]:
    """Rows, labels and weights as tensors, and columns of groups as they are."""
    x, y, weights, groups, *_ = examples
    x, y = (torch.as_tensor(column, device=device) for column in (x, y))
    own = None if weights is None else torch.as_tensor(weights, device=device)
    return x, y, own, groups


def scores_of_rows(module: nn.Module, x: AnyArray, device: str) -> AnyArray:
    """The scores of rows, ``[n]`` or ``[n, K]``.

    Raises:
        ValueError: One is not finite; the message names the row and its largest entry.
    """
    found = score(module, torch.as_tensor(np.ascontiguousarray(x), device=device)).cpu().numpy()
    strange = ~np.isfinite(found).all(axis=tuple(range(1, found.ndim)))
    if strange.any():
        row = int(np.argmax(strange))
        column = int(np.argmax(np.abs(x[row])))
        raise ValueError(
            f"The model has no finite score for row {row}, whose largest entry is "
            f"{x[row, column]:g} in column {column}. Is that far from the rows of fit? Mend it; "
            "else fit again with a lower learning rate."
        )
    return found
