"""World size and rank, whether a global-batch call is under way, and processes of a launcher."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Literal

import torch
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


_TIMEOUT = "SETPOINT_TIMEOUT"
"""Seconds after which a rank gives up on one that is silent (not dead: that is seen at once)."""
_LOST = re.compile(
    r"closed by peer|reset by peer|Broken pipe|[Tt]imed? ?out|Connection refused|NCCL|"
    r"remote worker|no longer alive"
)


class RankLost(RuntimeError):
    """Another rank of the run has ended, or does not answer."""


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
        if isinstance(error, RankLost) or not _LOST.search(str(error)):
            raise
        who = f"rank {rank_of()} of {workers()}" if dist.is_initialized() else "this process"
        reason = str(error).strip().splitlines()[0][:200]
        raise RankLost(
            f"{who} stops: another process of this run has ended or does not answer. {advice} "
            f"({reason})"
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        if dist.is_initialized():
            dist.destroy_process_group()


def _told_to_stop(_signal: int, _frame: FrameType | None) -> None:
    """A launcher ends all processes when one of them has failed."""
    raise RankLost("stopped by its launcher: another process of this run has ended.")
