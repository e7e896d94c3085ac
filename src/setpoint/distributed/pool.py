"""A pool of workers for independent tasks: this process, spawned processes, or a Ray cluster.

    with open_pool(processes, on_steps=bar.update) as pool:
        data = pool.share(data)                                 # sent once per worker
        tasks = [pool.submit(train, data, seed) for seed in range(10)]
        results = [pool.result(task) for task in tasks]

A task that calls :func:`count_step` reports progress to ``on_steps``, wherever it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import connection, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any, Literal, Protocol

import torch

from setpoint._checks import whole

Processes = int | Literal["ray"]
"""A number of processes of this machine (1: this one), or a Ray cluster."""
OnSteps = Callable[[int], None]
_POLL = 0.2  # seconds between two reports of progress


class Pool(Protocol):
    """Where tasks run."""

    def share(self, value: Any) -> Any:
        """A handle for a large argument of many tasks; call it before the first :meth:`submit`."""

    def submit(self, work: Callable[..., Any], *given: Any) -> Any:
        """Start ``work(*given)``; returns a task for :meth:`finished` and :meth:`result`."""

    def finished(self, running: Sequence[Any]) -> list[Any]:
        """The tasks among ``running`` that have ended; waits a moment if none has."""

    def result(self, task: Any) -> Any:
        """What the task returned, once it has ended; raises what it raised."""


def check_processes(processes: object) -> Processes:
    """A number of processes from 1, or ``"ray"``; ValueError otherwise, or if Ray is missing."""
    if processes == "ray":
        if find_spec("ray") is None:
            raise ValueError('processes="ray" needs Ray: pip install "setpoint[ray]"')
        return "ray"
    if isinstance(processes, str):
        raise ValueError(f"processes must be a number or 'ray'; got {processes!r}.")
    return whole(processes, "processes", least=1)


def check_sendable(value: Any, what: str) -> None:
    """TypeError if ``value`` cannot be sent to another process; ``what`` names it."""
    try:
        ForkingPickler.dumps(value)
    except Exception as error:
        raise TypeError(
            f"With processes > 1 {what} must be functions that other processes can import "
            f"({error}). Define them at the top of a file instead of inside a function or as a "
            "lambda, or use processes=1."
        ) from None


@contextmanager
def open_pool(
    processes: Processes,
    *,
    on_steps: OnSteps = lambda _: None,
    advice: str = "",
    retries: int = 0,
) -> Iterator[Pool]:
    """A pool, closed at the end; a Ray cluster that was running before is left running.

    Args:
        processes: How many processes, or ``"ray"``. With 1, tasks run in this process,
            one after another, when their results are asked for.
        on_steps: Called with the number of steps that tasks have counted since the last call.
        advice: What to do if a worker is killed, for the error.
        retries: How often Ray starts a task again whose worker was killed.
    """
    if processes == 1:
        yield _Here(on_steps)
    elif processes == "ray":
        with _ray_cluster() as ray:
            yield _Ray(ray, on_steps, retries)
    else:
        pool = _Local(processes, on_steps, advice)
        try:
            yield pool
        finally:
            pool.close()


def count_step() -> None:
    """Report one step of the running task to the pool's ``on_steps``."""
    _count_step[0]()


_count_step: list[Callable[[], None]] = [
    lambda: None
]  # set by the pool, in the process of the task


class _Here:
    """This process: a task runs when its result is asked for."""

    def __init__(self, on_steps: OnSteps) -> None:
        self._on_steps = on_steps

    def share(self, value: Any) -> Any:
        return value

    def submit(self, work: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        return partial(work, *given)

    def finished(self, running: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        return list(running[:1])

    def result(self, task: Callable[[], Any]) -> Any:
        before, _count_step[0] = _count_step[0], lambda: self._on_steps(1)
        try:
            return task()
        finally:
            _count_step[0] = before


@dataclass(frozen=True)
class _Shared:
    """Stands for a shared value in the arguments of a task."""

    place: int


class _Local:
    """Spawned processes of this machine; they start with the first task."""

    def __init__(self, processes: int, on_steps: OnSteps, advice: str) -> None:
        self._processes, self._on_steps, self._advice = processes, on_steps, advice
        self._context = get_context("spawn")  # a fork of a process that has run torch may hang
        self._steps = self._context.Value("q", 0)
        self._reported = 0
        self._values: list[Any] = []
        self._executor: ProcessPoolExecutor | None = None

    def share(self, value: Any) -> Any:
        if self._executor is not None:
            raise RuntimeError("share() comes before the first submit().")
        self._values.append(value)
        return _Shared(len(self._values) - 1)

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        if self._executor is None:
            threads = max(1, torch.get_num_threads() // self._processes)
            start = (threads, self._steps, self._values)
            self._executor = ProcessPoolExecutor(
                self._processes, self._context, initializer=_start_worker, initargs=start
            )
        with self._told():
            return self._executor.submit(_run_task, work, given)

    def finished(self, running: Sequence[Future[Any]]) -> list[Future[Any]]:
        done = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED).done
        self._report()
        return list(done)

    def result(self, task: Future[Any]) -> Any:
        while not task.done():
            self.finished([task])
        self._report()
        with self._told():
            return task.result()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def _report(self) -> None:
        steps = self._steps.value
        if steps > self._reported:
            self._on_steps(steps - self._reported)
            self._reported = steps

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except BrokenProcessPool:
            raise RuntimeError(
                "A worker process was killed (out of memory?), or could not start: a script must "
                'start its work below `if __name__ == "__main__":`, with functions that can be '
                f"imported. {self._advice}".strip()
            ) from None


_shared_values: list[Any] = []  # what is shared, in a worker


def _start_worker(threads: int, steps: Any, values: list[Any]) -> None:
    def count() -> None:
        with steps.get_lock():
            steps.value += 1

    torch.set_num_threads(threads)
    _shared_values[:] = values
    _count_step[0] = count
    Thread(target=_end_with_parent, daemon=True).start()


def _run_task(work: Callable[..., Any], given: Sequence[Any]) -> Any:
    return work(*(_shared_values[one.place] if isinstance(one, _Shared) else one for one in given))


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for tasks for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _ray_cluster() -> Iterator[Any]:
    ray: Any = import_module("ray")
    ours = not ray.is_initialized()
    if ours:
        # A cluster of our own imports what this process can import.
        here = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
        ray.init(log_to_driver=False, include_dashboard=False, runtime_env=here)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


class _Ray:
    """A Ray cluster: one processor per task; steps are reported when a task has ended."""

    def __init__(self, ray: Any, on_steps: OnSteps, retries: int) -> None:
        self._ray, self._on_steps = ray, on_steps
        self._remote = ray.remote(num_cpus=1, max_retries=retries)(_run_counted)

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def submit(self, work: Callable[..., Any], *given: Any) -> Any:
        return self._remote.remote(work, *given)

    def finished(self, running: Sequence[Any]) -> list[Any]:
        done, _ = self._ray.wait(list(running), num_returns=1, timeout=_POLL)
        return list(done)

    def result(self, task: Any) -> Any:
        try:
            steps, found = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        if steps:
            self._on_steps(steps)
        return found


def _run_counted(work: Callable[..., Any], *given: Any) -> tuple[int, Any]:
    """The steps that a task has counted, and what it returned."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    torch.set_num_threads(1)
    _count_step[0] = count
    found = work(*given)
    return steps, found
