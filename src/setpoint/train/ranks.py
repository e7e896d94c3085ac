"""The processes that train together: which rows each has, and what it calls.

Batches are drawn from the rows of all, the same on every rank; a rank trains on those that it has.
So a run on four processes draws the batches of a run on one, and goes on where that one was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint.distributed import gather_columns, rank_of, workers
from setpoint.solvers import BatchCriterion, GlobalBatch
from setpoint.solvers.samplers import Batch


@dataclass(frozen=True)
class Team:
    """One rank's view of a run.

    Attributes:
        model: As it is called: wrapped, if there are several ranks.
        criterion: The same: that of the global batch.
        labels: Of the rows of all ranks.
        first: Which of them is this rank's first.
        count: How many it has.
    """

    model: nn.Module
    criterion: Any
    labels: Tensor
    first: int
    count: int

    @classmethod
    def of(cls, model: nn.Module, criterion: Any, labels: Tensor) -> Team:
        """All processes of the process group, each with its own ``labels``; or this one alone."""
        if workers() == 1:
            return cls(model, criterion, labels, 0, len(labels))
        found, sizes, _ = gather_columns({"labels": labels})
        wrapped = DistributedDataParallel(model)
        called = criterion if isinstance(criterion, BatchCriterion) else GlobalBatch(criterion)
        all_labels = torch.as_tensor(found["labels"])
        first = sum(sizes[: rank_of()])
        return cls(wrapped, called.attach(wrapped), all_labels, first, len(labels))

    def own(self, batch: Batch) -> Batch:
        """The rows of a batch that are here, by their places here."""
        if self.count == len(self.labels):
            return batch
        here = (batch.rows >= self.first) & (batch.rows < self.first + self.count)
        weights = None if batch.weights is None else batch.weights[here]
        return Batch(batch.rows[here] - self.first, weights)


def first_row(count: int) -> int:
    """Which of all ranks' rows is this rank's first, if it has ``count``."""
    return 0 if workers() == 1 else sum(sizes_of(count)[: rank_of()])


def sizes_of(count: int) -> list[int]:
    """How many rows every rank has."""
    if workers() == 1:
        return [count]
    return [int(size) for size in gather_columns({"count": torch.tensor([count])})[0]["count"]]


def from_first(value: Any) -> Any:
    """What rank 0 has, on all ranks."""
    if workers() == 1:
        return value
    told = [value]
    dist.broadcast_object_list(told, src=0)
    return told[0]


def added_up(number: int) -> int:
    """The sum over all ranks, modulo 2^64."""
    if workers() == 1:
        return number
    halves = torch.tensor([[number >> 32, number & 0xFFFFFFFF]])
    high, low = (int(x) for x in torch.as_tensor(gather_columns({"n": halves})[0]["n"]).sum(0))
    return ((high << 32) + low) % 2**64
