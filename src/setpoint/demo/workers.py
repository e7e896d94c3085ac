"""Trials on several cores: a process each, because models this small do not fill one together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

import torch

from setpoint.demo.plan import Plan
from setpoint.demo.trials import Task, Trial, run_task, run_trials, tasks

POLL = 0.2  # seconds between two looks at the steps done


def run_on_cores(plan: Plan, on_steps: Callable[[int], None], cores: int) -> list[Trial]:
    """All trials, by ``cores`` processes; steps are announced as they are counted."""
    if cores == 1:
        return run_trials(plan, lambda: on_steps(1))
    context = get_context("spawn")  # a fork of a process that has run torch may hang
    steps = context.Value("q", 0)
    with ProcessPoolExecutor(cores, context, initializer=_begin, initargs=(steps,)) as pool:
        futures = [pool.submit(_work, task) for task in tasks(plan)]
        announced, left = 0, set(futures)
        while left:
            _, left = wait(left, timeout=POLL, return_when=FIRST_COMPLETED)
            on_steps(steps.value - announced)
            announced = steps.value
        return [trial for future in futures for trial in future.result()]


_STEPS: list[Any] = []  # the shared counter, in a worker


def _begin(steps: Any) -> None:
    torch.set_num_threads(1)
    _STEPS.append(steps)


def _work(task: Task) -> list[Trial]:
    return run_task(task, _count)


def _count() -> None:
    with _STEPS[0].get_lock():
        _STEPS[0].value += 1
