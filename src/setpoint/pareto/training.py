"""Train the points of a front: each from its neighbour's weights, by its rule, on a falling rate.

The rate falls by the same factor every step, to a hundredth: each size of step gets its share, so
the last ones leave the point on its level (at a constant rate it would circle around it) although
it is not known in advance which rate suits the losses. The ends have a long way to go instead, from
a fresh model to a minimum: their rate falls only in the last quarter. If steps are exact an end is
then settled like any other point: as little of its second loss as there is where the first stays.

Weights travel through the store's files, never through pipes, so a process only needs to know
which point to train, and one that is killed costs only that point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from setpoint.distributed import Processes, check_sendable, count_step, open_pool
from setpoint.pareto.job import Job, PlannedPoint, read_losses, ready
from setpoint.pareto.points import FrontPoint
from setpoint.pareto.rules import AtMost, LexicographicEnd, PointRule, inner_rule
from setpoint.pareto.store import Store

_SEED_STEP = 1_000_003  # points of one front draw different batches, and so do neighbouring seeds
_LAST_RATE, _CONSTANT_AT_ENDS = 0.01, 0.75

_ADVICE = "Finished points are kept if folder= was given; run it again."


def train_points(
    job: Job, store: Store, processes: Processes, on_steps: Callable[[int], None]
) -> None:
    """Train every point that is not in the store yet; ``on_steps`` is told of finished steps."""
    planned, done = job.planned(), set(store.done())
    on_steps(sum(job.steps_of(point) for point in planned if point.place in done))
    if processes != 1 and len(done) < len(planned):
        check_sendable(job, "the model, objectives and measure")
    with open_pool(processes, on_steps=on_steps, advice=_ADVICE) as pool:
        shared, running = pool.share(job), dict[Any, int]()
        while len(done) < len(planned):
            for point in ready(planned, done):
                if point.place not in running.values():
                    running[pool.submit(train_point, shared, store, point)] = point.place
            for task in pool.finished(list(running)):
                pool.result(task)
                done.add(running.pop(task))


def train_point(job: Job, store: Store, point: PlannedPoint) -> None:
    """Train one point and write it to the store, which has what it starts from already."""
    begin = perf_counter()
    with torch.random.fork_rng(devices=[]):
        model = job.fresh_model()
        if point.start is not None:
            model.load_state_dict(store.read(point.start)[1])
        torch.manual_seed(job.seed + _SEED_STEP * (point.place + 1))
        if point.start is None:
            status, level = _train_end(job, point.place, model), None
        else:
            status, level = _train_between(job, store, point.place, model)
        minimized, held = _evaluate(job, model.eval(), point.place)
        measures = {} if job.measure is None else dict(job.measure(model))
    trained = FrontPoint(
        place=point.place,
        minimized=minimized,
        held=held,
        level=level,
        steps=job.steps_of(point),
        seconds=perf_counter() - begin,
        status=status,
        measures={name: float(value) for name, value in measures.items()},
    )
    store.write(trained, model.state_dict())


def _train_end(job: Job, place: int, model: nn.Module) -> str:
    """One loss before the other; returns the status of the descent.

    With exact steps the second loss is then settled: on Adult the loss of the fair end falls from
    0.398 to 0.370 in 80 steps, where 500 steps of priorities had left it, and with it the levels
    between the ends are no longer slack.
    """
    held_first = place == 0
    optimizer = job.make_optimizer(model)
    rule = LexicographicEnd(optimizer, held_first=held_first)
    _descend(job, place, model, optimizer, rule, steps=job.end_steps, constant=_CONSTANT_AT_ENDS)
    if job.exact:
        level = _evaluate(job, model.eval(), place)[1 if held_first else 0]
        optimizer = job.make_optimizer(model)
        settled = AtMost(optimizer, level, exact=True, steps=job.steps, holds_first=not held_first)
        _descend(job, place, model, optimizer, settled, steps=job.steps)
    return rule.status


def _train_between(
    job: Job, store: Store, place: int, model: nn.Module
) -> tuple[str, float | None]:
    """By the rule of the front's method; returns its status, and the level if it has one."""
    ends = store.read(0)[0], store.read(job.points - 1)[0]
    share = place / (job.points - 1)
    optimizer = job.make_optimizer(model)
    rule, level = inner_rule(job.method, share, ends, optimizer, exact=job.exact, steps=job.steps)
    _descend(job, place, model, optimizer, rule, steps=job.steps)
    return rule.status, level


def _descend(
    job: Job,
    place: int,
    model: nn.Module,
    optimizer: Optimizer,
    rule: PointRule,
    *,
    steps: int,
    constant: float = 0.0,
) -> None:
    """All steps of one rule; ``constant`` is the share of them before the rate falls."""
    schedule = LambdaLR(optimizer, lambda step: rate_after(step / steps, constant))
    model.train()
    batches = job.source.draw(steps, job.seed + _SEED_STEP * (place + 1))
    for step, batch in enumerate(batches):
        _, (minimized, held) = read_losses(job.objectives(model, *batch))
        _check_finite(job, place, (minimized.item(), held.item()), f"in step {step}")
        optimizer.zero_grad()
        rule.backward(minimized, held)
        optimizer.step()
        schedule.step()
        count_step()


def rate_after(share: float, constant: float) -> float:
    """The factor of the learning rate after a share of the steps, constant for part of them.

    Examples:
        >>> [round(rate_after(share, 0.5), 2) for share in (0.0, 0.5, 0.75, 1.0)]
        [1.0, 1.0, 0.1, 0.01]
    """
    return float(_LAST_RATE ** (max(0.0, share - constant) / (1 - constant)))


@torch.no_grad()
def _evaluate(job: Job, model: nn.Module, place: int) -> tuple[float, float]:
    """Both objectives on all data; raises if one is not finite."""
    sums, total = [0.0, 0.0], 0.0
    for batch, weight in job.source.everything():
        _, losses = read_losses(job.objectives(model, *batch))
        sums = [before + weight * float(loss) for before, loss in zip(sums, losses, strict=True)]
        total += weight
    values = sums[0] / total, sums[1] / total
    _check_finite(job, place, values, "after training")
    return values


def _check_finite(job: Job, place: int, values: tuple[float, float], when: str) -> None:
    for name, value in zip(job.names, values, strict=True):
        if not math.isfinite(value):
            raise ValueError(
                f"{name} is {value} at point {place} of the front, {when}; lower learning_rate "
                f"(it is {job.learning_rate:g}) or look at the loss. Finished points are kept."
            )
