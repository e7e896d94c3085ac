"""World size and rank, sums and values over ranks, processes of a launcher, and waiting for them.

A slow rank is told of, one that is gone or silent ends the wait. Every rank has a thread that
writes once a second, into the store of the process group, how many messages the rank has begun. So
a rank that waits longer than :data:`PATIENCE` can say for whom, and whether that rank is alive; it
says so again after twice the time. The wait ends with the timeout of the process group
(``init_process_group(timeout=...)``; under ``setpoint train``, ``SETPOINT_TIMEOUT``), at once if a
connection breaks.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

Reduction = Literal["mean", "sum", "none"]
"""What becomes of the gradients of the ranks: averaged (as DDP does), added up, or left alone."""
Row = list[Tensor | None]
"""One gradient per parameter; None where the loss does not reach it."""
PATIENCE = 10.0
"""Seconds after which a rank that waits for others says so."""
_BEAT = 1.0  # seconds between two signs of life
_LOST = re.compile(
    r"closed by peer|reset by peer|Broken pipe|[Tt]imed? ?out|Connection refused|NCCL|"
    r"remote worker|no longer alive"
)
_log = logging.getLogger("setpoint")


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


class RankLost(RuntimeError):
    """Another rank of the run has ended, or does not answer."""


class _Watch:
    """What this rank waits for, and the thread that tells others and the user."""

    def __init__(self) -> None:
        self.process = self.begun = 0
        self.since: float | None = None
        self.ranks: list[int] = []
        self.store: Any = None

    def begin(self, group: dist.ProcessGroup | None) -> None:
        """A message begins: from now on this rank waits for the others of the group."""
        self.ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
        store = dist.distributed_c10d._get_default_store()
        if self.process != os.getpid() or self.store is not store:
            self.process, self.store, self.begun = os.getpid(), store, 0
            threading.Thread(target=self._beat, args=(store,), daemon=True).start()
        self.begun += 1
        self.since = time.monotonic()

    def _beat(self, store: Any) -> None:
        """Write signs of life, and tell of long waits, until the process group has gone."""
        told, last = 0.0, self.since
        with suppress(Exception):  # the store goes with the process group
            while self.store is store and dist.is_initialized():
                store.set(f"setpoint/{dist.get_rank()}", f"{self.begun} {time.time()}")
                since, ranks = self.since, self.ranks
                waited = 0.0 if since is None else time.monotonic() - since
                told, last = told if since == last else 0.0, since  # another wait, another telling
                if waited >= max(PATIENCE, 2 * told):
                    told = waited
                    _log.warning("rank %s waits for %s.", dist.get_rank(), self.missing(ranks))
                time.sleep(min(_BEAT, PATIENCE / 2))

    def missing(self, ranks: list[int]) -> str:
        """The ranks that have begun fewer messages than this one, and when they were alive."""
        behind = []
        for rank in ranks:
            key = f"setpoint/{rank}"
            begun, seen = "0", ""
            if rank != dist.get_rank() and self.store.check([key]):
                begun, seen = self.store.get(key).decode().split()
            if rank != dist.get_rank() and int(begun) < self.begun:
                behind.append(f"rank {rank} ({_life(seen)})")
        waited = 0.0 if self.since is None else time.monotonic() - self.since
        return f"{' and '.join(behind) or 'another rank'}, for {waited:.0f} s now"


def _life(seen: str) -> str:
    quiet = time.time() - float(seen) if seen else float("inf")
    if quiet < 3 * _BEAT:
        return "alive, and not there yet"
    return "no sign of life" + ("" if quiet == float("inf") else f" for {quiet:.0f} s")


_watch = _Watch()


@contextmanager
def answered(group: dist.ProcessGroup | None) -> Iterator[None]:
    """A message to all ranks of a group.

    Raises:
        RankLost: A rank has ended, or has not answered within the timeout of the group.
    """
    _watch.begin(group)
    try:
        yield
    except RuntimeError as error:
        raise lost(error) from None
    finally:
        _watch.since = None


def lost(error: RuntimeError) -> RuntimeError:
    """The error, in words if it is that of a rank that is lost."""
    if isinstance(error, RankLost) or not _LOST.search(str(error)):
        return error
    if not dist.is_initialized():
        who, whom = "this process", "another process of this run"
    else:
        who, whom = f"rank {dist.get_rank()} of {dist.get_world_size()}", "another process"
        with suppress(Exception):
            whom = _watch.missing(_watch.ranks)
    reason = str(error).strip().splitlines()[0][:150]
    return RankLost(
        f"{who} stops: another process of this run has ended or does not answer. "
        f"It waits for {whom}. ({reason})"
    )


def own_rows(message: str, sizes: list[int]) -> str:
    """A message about rows of all ranks' batch, with the rank and its own row instead.

    Examples:
        >>> own_rows("Scores must be finite; got nan in row 37.", [30, 10])
        'Scores must be finite; got nan in row 7 of rank 1.'
    """

    def named(found: re.Match[str]) -> str:
        row = int(found[1])
        for rank, size in enumerate(sizes):
            if row < size:
                return f"in row {row} of rank {rank}"
            row -= size
        return found[0]

    return re.sub(r"in row (\d+)\b", named, message)
