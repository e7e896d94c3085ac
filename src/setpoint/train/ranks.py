"""Training on several processes: which rows each has, and the model and criterion that it calls.

Batches are drawn from the rows of all ranks, the same batches on every rank; a rank trains on those
rows of a batch that it has. So a run on four processes draws the batches of a run on one, and can
resume its checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint.distributed import gather_columns, rank_of, workers
from setpoint.solvers import BatchCriterion, GlobalBatch
from setpoint.solvers.samplers import Batch


@dataclass(frozen=True)
class RankView:
    """One rank's view of a run.

    Attributes:
        model: The model to call: wrapped in DistributedDataParallel if there are several ranks.
        criterion: The criterion to call: that of the global batch.
        labels: The labels of all ranks' rows, rank after rank.
        first: The position of this rank's first row among them.
        count: How many rows this rank has.
    """

    model: nn.Module
    criterion: Any
    labels: Tensor
    first: int
    count: int

    @classmethod
    def of(cls, model: nn.Module, criterion: Any, labels: Tensor) -> RankView:
        """The view of this rank, which has ``labels``, in the process group (if there is one)."""
        if workers() == 1:
            return cls(model, criterion, labels, 0, len(labels))
        found, sizes, _ = gather_columns({"labels": labels})
        wrapped = DistributedDataParallel(model)
        called = criterion if isinstance(criterion, BatchCriterion) else GlobalBatch(criterion)
        all_labels = torch.as_tensor(found["labels"])
        first = sum(sizes[: rank_of()])
        return cls(wrapped, called.attach(wrapped), all_labels, first, len(labels))

    def local(self, batch: Batch) -> Batch:
        """The part of a batch that this rank has, by positions among its own rows."""
        if self.count == len(self.labels):
            return batch
        here = (batch.rows >= self.first) & (batch.rows < self.first + self.count)
        weights = None if batch.weights is None else batch.weights[here]
        return Batch(batch.rows[here] - self.first, weights)
