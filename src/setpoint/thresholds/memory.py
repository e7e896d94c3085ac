"""A memory of recent scores: a ring in the state of a criterion, oldest out first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from setpoint.thresholds.sample import Sample


class Memory(nn.Module):
    """The last ``capacity`` examples seen, without gradients.

    Empty places have weight zero and so are absent. The ring takes its shape from the first batch,
    or from a checkpoint.
    """

    scores: Tensor
    columns: Tensor
    position: Tensor

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.register_buffer("scores", torch.empty(0, 0))
        self.register_buffer("columns", torch.empty(0, 0, 0))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))

    def sample(self, like: Sample) -> Sample:
        """What is remembered, shaped ``like`` a batch."""
        if self.scores.numel() == 0:
            c, _, k = like.columns.shape
            self.scores = like.scores.new_zeros(c, self.capacity)
            self.columns = like.columns.new_zeros(c, self.capacity, k)
        if self.scores.shape[0] != like.scores.shape[0]:
            raise ValueError(
                f"The memory holds {self.scores.shape[0]} outputs; got {like.scores.shape[0]}."
            )
        return Sample(self.scores, self.columns)

    def add(self, batch: Sample) -> None:
        """Remember a batch (the end of it, if it is longer than the memory)."""
        self.sample(batch)
        scores = batch.scores.detach()[:, -self.capacity :]
        columns = batch.columns[:, -self.capacity :]
        index = (
            self.position + torch.arange(scores.shape[1], device=scores.device)
        ) % self.capacity
        self.scores = self.scores.index_copy(1, index, scores)
        self.columns = self.columns.index_copy(1, index, columns)
        self.position = (self.position + scores.shape[1]) % self.capacity

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        adopt_shapes(self, state, prefix, ("scores", "columns"))
        super()._load_from_state_dict(state, prefix, *rest)


def adopt_shapes(
    module: nn.Module, state: dict[str, Any], prefix: str, names: tuple[str, ...]
) -> None:
    """Give buffers the shapes they have in a checkpoint, before they are loaded."""
    for name in names:
        saved, own = state.get(prefix + name), getattr(module, name)
        if saved is not None:
            setattr(module, name, torch.zeros_like(saved, device=own.device))
