"""Train one point of a front: from its neighbour's weights, by its rule, on a falling rate.

The rate falls by the same factor every step, to a hundredth: each size of step gets its share, so
the last ones leave the point on its level (at a constant rate it would circle around it) although
nobody knows in advance which rate suits the losses. The ends have a long way to go instead, from a
fresh model to a minimum: their rate falls only in the last quarter. If steps are exact an end is
then settled like any other point: as little of its second loss as there is where the first stays.
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
from setpoint.pareto.job import Job, Leg, read_losses, ready
from setpoint.pareto.points import Point
from setpoint.pareto.rules import AtMost, Lexicographic, Rule, inner_rule
from setpoint.pareto.store import Store

NEVER_SEEN = 1_000_003  # points of one front draw different batches, and so do neighbouring seeds
LAST_RATE, CONSTANT_AT_ENDS = 0.01, 0.75

_ADVICE = "Finished points are kept if folder= was given; run it again."


def train_leg(job: Job, store: Store, leg: Leg, on_step: Callable[[], None]) -> Point:
    """Train the point of a leg and write it; whatever it needs is in the store already."""
    begin = perf_counter()
    with torch.random.fork_rng(devices=[]):
        model = job.fresh_model()
        if leg.start is not None:
            model.load_state_dict(store.read(leg.start)[1])
        torch.manual_seed(job.seed + NEVER_SEEN * (leg.place + 1))
        if leg.start is None:
            status, level = _train_end(job, leg, model, on_step), None
        else:
            status, level = _train_between(job, store, leg, model, on_step)
        minimized, held = values_of(job, model.eval(), leg.place)
        measures = {} if job.measure is None else dict(job.measure(model))
    point = Point(
        place=leg.place,
        minimized=minimized,
        held=held,
        level=level,
        steps=job.steps_of(leg),
        seconds=perf_counter() - begin,
        status=status,
        measures={name: float(value) for name, value in measures.items()},
    )
    store.write(point, model.state_dict())
    return point


def _train_end(job: Job, leg: Leg, model: nn.Module, on_step: Callable[[], None]) -> str:
    """One loss before the other; the status is that of the descent.

    What the second loss gains from being settled: on Adult the loss of the fair end falls from
    0.398 to 0.370 in 80 steps, where 500 steps of priorities had left it, and with it the levels
    between the ends are no longer slack.
    """
    held_first = leg.place == 0
    optimizer = job.make_optimizer(model)
    rule = Lexicographic(optimizer, held_first=held_first)
    _descend(job, leg, model, optimizer, rule, job.end_steps, CONSTANT_AT_ENDS, on_step)
    if job.exact:
        level = values_of(job, model.eval(), leg.place)[1 if held_first else 0]
        optimizer = job.make_optimizer(model)
        settled = AtMost(optimizer, level, exact=True, steps=job.steps, holds_first=not held_first)
        _descend(job, leg, model, optimizer, settled, job.steps, 0.0, on_step)
    return rule.status


def _train_between(
    job: Job, store: Store, leg: Leg, model: nn.Module, on_step: Callable[[], None]
) -> tuple[str, float | None]:
    """By the rule of the front's method."""
    ends = store.read(0)[0], store.read(job.points - 1)[0]
    share = leg.place / (job.points - 1)
    optimizer = job.make_optimizer(model)
    rule, level = inner_rule(job.method, share, ends, optimizer, exact=job.exact, steps=job.steps)
    _descend(job, leg, model, optimizer, rule, job.steps, 0.0, on_step)
    return rule.status, level


def _descend(
    job: Job,
    leg: Leg,
    model: nn.Module,
    optimizer: Optimizer,
    rule: Rule,
    steps: int,
    constant: float,
    on_step: Callable[[], None],
) -> None:
    """All steps of one rule; ``constant`` is the share of them before the rate falls."""
    schedule = LambdaLR(optimizer, lambda step: rate_after(step / steps, constant))
    model.train()
    batches = job.source.draw(steps, job.seed + NEVER_SEEN * (leg.place + 1))
    for step, batch in enumerate(batches):
        _, (minimized, held) = read_losses(job.objectives(model, *batch))
        _check_finite(job, leg.place, (minimized.item(), held.item()), f"in step {step}")
        optimizer.zero_grad()
        rule.backward(minimized, held)
        optimizer.step()
        schedule.step()
        on_step()


def rate_after(share: float, constant: float) -> float:
    """The factor of the learning rate after a share of the steps, constant for part of them.

    Example:
        >>> [round(rate_after(share, 0.5), 2) for share in (0.0, 0.5, 0.75, 1.0)]
        [1.0, 1.0, 0.1, 0.01]
    """
    return float(LAST_RATE ** (max(0.0, share - constant) / (1 - constant)))


@torch.no_grad()
def values_of(job: Job, model: nn.Module, place: int) -> tuple[float, float]:
    """Both objectives on all data, or an error if one is not a number."""
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
