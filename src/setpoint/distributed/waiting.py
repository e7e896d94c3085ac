"""Waiting for other ranks: a slow one is told of, one that is gone or silent ends the wait.

Every rank has a thread that writes once a second, into the store of the process group, how many
messages the rank has begun. So a rank that waits longer than :data:`PATIENCE` can say for whom, and
whether that rank is alive; it says so again after twice the time. The wait ends with the timeout of
the process group (``init_process_group(timeout=...)``; under ``setpoint train``,
``SETPOINT_TIMEOUT``), at once if a connection breaks.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch.distributed as dist

PATIENCE = 10.0
"""Seconds after which a rank that waits for others says so."""
_BEAT = 1.0  # seconds between two signs of life
_LOST = re.compile(
    r"closed by peer|reset by peer|Broken pipe|[Tt]imed? ?out|Connection refused|NCCL|"
    r"remote worker|no longer alive"
)
_log = logging.getLogger("setpoint")


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
