"""Train the points of a front, on one process or several: each as soon as its neighbour is done.

Weights travel through the store's files, never through pipes, so a process needs to be told only
which point to train, and one that is killed costs its own point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.distributed import Processes, check_sendable, count_step, open_pool
from setpoint.pareto.job import Job
from setpoint.pareto.route import Leg, ready
from setpoint.pareto.store import Store
from setpoint.pareto.training import train_leg

_ADVICE = "Finished points are kept if folder= was given; run it again."


def walk(job: Job, store: Store, processes: Processes, on_steps: Callable[[int], None]) -> None:
    """Train every point that is not in the store yet."""
    legs, done = job.legs(), set(store.done())
    on_steps(sum(job.steps_of(leg) for leg in legs if leg.place in done))
    if processes != 1 and len(done) < len(legs):
        check_sendable(job, "the model, objectives and measure")
    with open_pool(processes, on_steps=on_steps, advice=_ADVICE) as pool:
        shared, running = pool.share(job), dict[Any, int]()
        while len(done) < len(legs):
            for leg in ready(legs, done):
                if leg.place not in running.values():
                    running[pool.submit(_train, shared, store, leg)] = leg.place
            for task in pool.finished(list(running)):
                pool.result(task)
                done.add(running.pop(task))


def _train(job: Job, store: Store, leg: Leg) -> None:
    train_leg(job, store, leg, count_step)
