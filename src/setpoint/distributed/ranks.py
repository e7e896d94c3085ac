"""World size and rank, sums and values over ranks, and processes of a launcher."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.waiting import RankLost, answered, lost

Reduction = Literal["mean", "sum", "none"]
"""What becomes of the gradients of the ranks: averaged (as DDP does), added up, or left alone."""


Row = list[Tensor | None]
"""One gradient per parameter; None where the loss does not reach it."""


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
    """Whether other ranks have examples of the batch that this rank has not gathered."""
    return _Depth.count == 0 and workers(group) > 1


@contextmanager
def in_global_batch() -> Iterator[None]:
    """Inside, the examples at hand are those of all ranks: nothing is gathered twice."""
    _Depth.count += 1
    try:
        yield
    finally:
        _Depth.count -= 1


def refuse_several_ranks() -> None:
    """RuntimeError if a loss is computed on one rank's share of the batch.

    The rate of a shard is not the rate of the batch: averaging its gradients over ranks would
    silently train for another number than the one asked for.
    """
    if several_ranks():
        raise RuntimeError(
            f"This loss sees only its own rank's share of the batch, and there are {workers()} "
            "ranks. GlobalBatch(loss).attach(model) makes it the loss of all of them."
        )


def values_of_ranks(value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """The values that all ranks have, in the order of the ranks; anything that can be pickled."""
    found: list[Any] = [value]
    if workers(group) > 1:
        found = [None] * workers(group)
        with answered(group):
            dist.all_gather_object(found, value, group=group)
    return found


def average_gradients(
    rows: list[Row], params: Sequence[Tensor], group: dist.ProcessGroup | None
) -> None:
    """Replace every row by its mean over the ranks: ``autograd.grad`` bypasses DDP's own.

    What a loss reaches on one rank and not on another counts as zero there; what it reaches on
    none stays None.
    """
    size = workers(group)
    reached = torch.tensor([[part is not None for part in row] for row in rows]).float()
    reached = reached.to(params[0].device)
    with answered(group):
        dist.all_reduce(reached, group=group)
    waiting = []
    for row, anywhere in zip(rows, reached.tolist(), strict=True):
        for index, parameter in enumerate(params):
            if not anywhere[index]:
                continue
            part = row[index]
            own = torch.zeros_like(parameter) if part is None else part / size
            row[index] = own = own.contiguous()
            waiting.append(dist.all_reduce(own, group=group, async_op=True))
    with answered(group):
        for work in waiting:
            work.wait()


_TIMEOUT = "SETPOINT_TIMEOUT"
"""Seconds after which a rank gives up on one that is silent (not dead: that is seen at once)."""


def is_launched() -> bool:
    """Whether a launcher such as torchrun has started this process as one of several."""
    size = os.environ.get("WORLD_SIZE", "1")
    return "RANK" in os.environ and size.isdecimal() and int(size) > 1


@contextmanager
def join_launched(advice: str) -> Iterator[None]:
    """Join the process group of the launcher; it ends with the context.

    Args:
        advice: What to do when another rank is lost, for the error.

    Raises:
        RankLost: Another rank has ended before this one was done.
    """
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    seconds = float(os.environ.get(_TIMEOUT, "1800"))
    before = signal.signal(signal.SIGTERM, _told_to_stop)
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
        yield
        dist.barrier()  # a rank leaves when the others no longer need it
    except RuntimeError as error:
        told = lost(error)
        raise RankLost(f"{told} {advice}") if isinstance(told, RankLost) else told from None
    finally:
        signal.signal(signal.SIGTERM, before)
        if dist.is_initialized():
            dist.destroy_process_group()


def _told_to_stop(_signal: int, _frame: FrameType | None) -> None:
    """A launcher ends all processes when one of them has failed."""
    raise RankLost("stopped by its launcher: another process of this run has ended.")
