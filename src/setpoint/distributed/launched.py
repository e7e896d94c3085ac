"""Processes that a launcher such as torchrun started: how they meet, and how they part."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

import torch
import torch.distributed as dist

from setpoint.distributed.ranks import rank_of, workers

PATIENCE = "SETPOINT_TIMEOUT"
"""Seconds after which a rank gives up on one that is silent (not dead: that is seen at once)."""
LOST = re.compile(
    r"closed by peer|reset by peer|Broken pipe|[Tt]imed? ?out|Connection refused|NCCL|"
    r"remote worker|no longer alive",
)


class RankLost(RuntimeError):
    """Another rank of the run has ended, or does not answer."""


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several."""
    size = os.environ.get("WORLD_SIZE", "1")
    return "RANK" in os.environ and size.isdecimal() and int(size) > 1


@contextmanager
def one_of_several(advice: str) -> Iterator[None]:
    """Meet the other processes of the launcher; inside, they are one process group.

    Args:
        advice: What to do when another rank is lost, for the error.

    Raises:
        RankLost: Another rank has ended before this one was done.
    """
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    seconds = float(os.environ.get(PATIENCE, "1800"))
    before = signal.signal(signal.SIGTERM, _told_to_stop)
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
        yield
        dist.barrier()  # nobody leaves while others still need them
    except RuntimeError as error:
        if isinstance(error, RankLost) or not LOST.search(str(error)):
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
