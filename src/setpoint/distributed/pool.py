"""Pieces of work that do not depend on each other: processes of this machine, or a Ray cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import connection, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any, Literal, Protocol

import torch

from setpoint._checks import whole

Processes = int | Literal["ray"]
"""How many processes of this machine, or a Ray cluster."""


class Pool(Protocol):
    """Where work is done."""

    def share(self, value: Any) -> Any:
        """Make a large argument of many pieces of work cheap to hand out."""

    def submit(self, work: Callable[..., Any], *given: Any) -> Any:
        """Start a piece of work; returns what :meth:`finished` and :meth:`result` take."""

    def finished(self, running: Sequence[Any], seconds: float) -> list[Any]:
        """Those that are done, after waiting for one of them for so long at most."""

    def result(self, one: Any) -> Any:
        """What it returned; raises what it raised."""


def checked_processes(processes: object) -> Processes:
    """A number of processes, or the word."""
    if processes == "ray":
        if find_spec("ray") is None:
            raise ValueError('processes="ray" needs Ray: pip install "setpoint[ray]"')
        return "ray"
    if isinstance(processes, str):
        raise ValueError(f"processes must be a number or 'ray'; got {processes!r}.")
    return whole(processes, "processes", least=1)


@contextmanager
def pool_of(processes: Processes) -> Iterator[Pool]:
    """A pool, closed at the end; a Ray cluster that was there before stays."""
    if processes == "ray":
        ray: Any = import_module("ray")
        ours = not ray.is_initialized()
        if ours:
            # A cluster of our own imports what this process can import.
            here = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
            ray.init(log_to_driver=False, include_dashboard=False, runtime_env=here)
        try:
            yield _Ray(ray)
        finally:
            if ours:
                ray.shutdown()
        return
    threads = max(1, torch.get_num_threads() // processes)
    context = get_context("spawn")  # a fork of a process that has run torch may hang
    executor = ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(threads,))
    try:
        yield _Local(executor)
    finally:
        executor.shutdown(cancel_futures=True)


def check_sendable(value: Any, what: str) -> None:
    """An error that says what to do if a value cannot be sent to another process."""
    try:
        ForkingPickler.dumps(value)
    except Exception as error:
        raise TypeError(
            f"With processes > 1 {what} must be functions that other processes can import "
            f"({error}). Define them at the top of a file instead of inside a function or as a "
            "lambda, or use processes=1."
        ) from None


class _Local:
    """Processes of this machine."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self.executor = executor

    def share(self, value: Any) -> Any:
        return value

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        return self.executor.submit(work, *given)

    def finished(self, running: Sequence[Future[Any]], seconds: float) -> list[Future[Any]]:
        return list(wait(running, timeout=seconds, return_when=FIRST_COMPLETED).done)

    def result(self, one: Future[Any]) -> Any:
        return one.result()


class _Ray:
    """A Ray cluster: one processor for each piece of work."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self.remote = ray.remote(num_cpus=1, max_retries=0)(_call)

    def share(self, value: Any) -> Any:
        return self.ray.put(value)

    def submit(self, work: Callable[..., Any], *given: Any) -> Any:
        return self.remote.remote(work, *given)

    def finished(self, running: Sequence[Any], seconds: float) -> list[Any]:
        done, _ = self.ray.wait(list(running), num_returns=1, timeout=seconds)
        return list(done)

    def result(self, one: Any) -> Any:
        try:
            return self.ray.get(one)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None


def _call(work: Callable[..., Any], *given: Any) -> Any:
    torch.set_num_threads(1)
    return work(*given)


def _begin(threads: int) -> None:
    torch.set_num_threads(threads)
    Thread(target=leave_with_the_parent, daemon=True).start()


def leave_with_the_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
