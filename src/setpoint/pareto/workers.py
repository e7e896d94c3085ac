"""Walk a front, on this process or on several: a leg starts as soon as its neighbour is there.

Weights travel through the store's files, never through pipes, so a process needs to be told only
which leg to walk, and one that is killed costs its own leg.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Thread
from typing import Any

import torch

from setpoint.distributed.pool import (
    Processes,
    check_sendable,
    leave_with_the_parent,
    pool_of,
)
from setpoint.pareto.job import Job
from setpoint.pareto.route import Leg, ready
from setpoint.pareto.store import Store
from setpoint.pareto.training import train_leg

POLL = 0.2  # seconds between two looks at the steps done

OnSteps = Callable[[int], None]


def walk(job: Job, store: Store, processes: Processes, on_steps: OnSteps) -> None:
    """Train every point that is not in the store yet."""
    legs, done = job.legs(), set(store.done())
    on_steps(sum(job.steps_of(leg) for leg in legs if leg.place in done))
    if processes == "ray":
        _on_ray(job, store, legs, done, on_steps)
        return
    if processes > 1 and len(done) < len(legs):
        _on_processes(job, store, legs, done, processes, on_steps)
        return
    while waiting := ready(legs, done):
        train_leg(job, store, waiting[0], lambda: on_steps(1))
        done.add(waiting[0].place)


def _on_processes(
    job: Job,
    store: Store,
    legs: tuple[Leg, ...],
    done: set[int],
    processes: int,
    on_steps: OnSteps,
) -> None:
    check_sendable(job, "the model, objectives and measure")
    context = get_context("spawn")  # a fork of a process that has run torch may hang
    counter = context.Value("q", 0)
    threads = max(1, torch.get_num_threads() // processes)
    pool = ProcessPoolExecutor(
        processes, context, initializer=_begin, initargs=(job, store, counter, threads)
    )
    running: dict[Future[int], int] = {}
    counted = 0
    try:
        while len(done) < len(legs):
            for leg in ready(legs, done):
                if leg.place not in running.values():
                    running[pool.submit(_work, leg)] = leg.place
            finished, _ = wait(running, timeout=POLL, return_when=FIRST_COMPLETED)
            for future in finished:
                done.add(future.result())
                del running[future]
            on_steps(counter.value - counted)
            counted = counter.value
    except BrokenProcessPool:
        raise RuntimeError(
            "A process that trained a point was killed (out of memory?), or could not start: in a "
            'script, call pareto_front below `if __name__ == "__main__":`, with functions that can '
            "be imported. Finished points are kept if folder= was given; run it again."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _on_ray(
    job: Job, store: Store, legs: tuple[Leg, ...], done: set[int], on_steps: OnSteps
) -> None:
    """On a cluster, whose machines must all see the folder."""
    check_sendable(job, "the model, objectives and measure")
    with pool_of("ray") as pool:
        shared, running = pool.share(job), dict[Any, Leg]()
        while len(done) < len(legs):
            for leg in ready(legs, done):
                if leg not in running.values():
                    running[pool.submit(_leg, shared, store, leg)] = leg
            for one in pool.finished(list(running), POLL):
                pool.result(one)
                leg = running.pop(one)
                done.add(leg.place)
                on_steps(job.steps_of(leg))


def _leg(job: Job, store: Store, leg: Leg) -> None:
    train_leg(job, store, leg, lambda: None)


_MINE: list[Any] = []  # job, store and the shared counter, in a worker


def _begin(job: Job, store: Store, counter: Any, threads: int) -> None:
    torch.set_num_threads(threads)
    _MINE[:] = [job, store, counter]
    Thread(target=leave_with_the_parent, daemon=True).start()


def _work(leg: Leg) -> int:
    job, store, counter = _MINE

    def count() -> None:
        with counter.get_lock():
            counter.value += 1

    train_leg(job, store, leg, count)
    return leg.place
