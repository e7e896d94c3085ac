"""A memory of recent scores: a ring in the state of a criterion, oldest out first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.thresholds.sample import Sample
from setpoint.thresholds.state import State


class Memory(State):
    """The last ``capacity`` examples seen, without gradients.

    Empty places have weight zero and so are absent. The ring takes its shape from the first batch,
    or from a checkpoint.
    """

    scores: Tensor
    columns: Tensor
    position: Tensor

    _flexible = ("scores", "columns")

    def __init__(self, capacity: int, *, elastic: bool = False) -> None:
        super().__init__()
        self.capacity = capacity
        self.elastic = elastic  # takes its capacity from a checkpoint, too
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
        if self.scores.device != like.scores.device:  # loaded elsewhere than it is used
            self.to(like.scores.device)
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
        saved = state.get(prefix + "scores")
        held = 0 if saved is None else saved.shape[-1]
        if held and not self.elastic and held != self.capacity:
            raise ValueError(
                f"The checkpoint remembers {held} scores, this criterion memory={self.capacity}: "
                f"build it with memory={held}."
            )
        super()._load_from_state_dict(state, prefix, *rest)
        self.capacity = held or self.capacity
