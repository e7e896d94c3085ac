"""Who else is there, and whether what is being computed is already that of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch.distributed as dist

Reduction = Literal["mean", "sum", "none"]
"""What becomes of the gradients of the ranks: averaged (as DDP does), added up, or left alone."""


class _Depth:
    """Above zero while a rank computes with the examples of all ranks."""

    count = 0


def workers(group: dist.ProcessGroup | None = None) -> int:
    """How many processes train together; 1 outside of ``torch.distributed``."""
    if not (dist.is_available() and dist.is_initialized()):
        return 1
    return dist.get_world_size(group)


def rank_of(group: dist.ProcessGroup | None = None) -> int:
    """Which of them this is; 0 outside of ``torch.distributed``."""
    return dist.get_rank(group) if workers(group) > 1 else 0


def several_ranks(group: dist.ProcessGroup | None = None) -> bool:
    """Whether there are examples that this rank does not have before it."""
    return _Depth.count == 0 and workers(group) > 1


@contextmanager
def together() -> Iterator[None]:
    """Inside, the examples at hand are those of all ranks: nothing is gathered twice."""
    _Depth.count += 1
    try:
        yield
    finally:
        _Depth.count -= 1


def refuse_several_ranks() -> None:
    """Raise if a loss is about to be that of one rank's share of the batch.

    A rate of a shard is not the rate of the batch: averaging gradients over ranks would train for
    another number than the one asked for, without a word.
    """
    if several_ranks():
        raise RuntimeError(
            f"This loss sees only its own rank's share of the batch, and there are {workers()} "
            "ranks. GlobalBatch(loss).attach(model) makes it the loss of all of them."
        )
