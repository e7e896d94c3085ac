"""What the body of a trained network makes of data, computed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from setpoint.solvers import Split
from setpoint.solvers.last_layer.split import check_features


class Cached(NamedTuple):
    """What a body makes of some data: features ``[n, ...]``, labels, and weights if there are."""

    features: Tensor
    labels: Tensor
    weights: Tensor | None = None


@torch.no_grad()
def cached_features(
    model: nn.Module, head: nn.Module | str | None, loader: Iterable[Any]
) -> Cached:
    """The features of all examples of a loader, in evaluation mode.

    Args:
        model: A trained model.
        head: Its last layer, or its name; None for the last layer of an ``nn.Sequential``.
        loader: Gives ``(x, y)`` or ``(x, y, weights)``, batch by batch.
    """
    split = model if isinstance(model, Split) else Split(model, head)
    modes = [(part, part.training) for part in split.modules()]
    parts: list[tuple[Tensor, ...]] = []
    split.eval()
    try:
        for batch in loader:
            if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
                raise TypeError(
                    "The loader must give (x, y) or (x, y, weights); "
                    f"got {type(batch).__name__}. Wrap it in a generator that does."
                )
            features = split.features(batch[0])
            check_features(features, split.head)
            parts.append((features, *map(torch.as_tensor, batch[1:])))
    finally:
        for part, mode in modes:
            part.training = mode
    if not parts:
        raise ValueError("The loader gave no batch: nothing to train the head on.")
    return Cached(*(torch.cat(column) for column in zip(*parts, strict=True)))
