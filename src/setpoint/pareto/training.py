"""``pareto_front``: both ends by lexicographic training, then the levels between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from setpoint._checks import positive, whole
from setpoint._files import write_file
from setpoint.distributed import Processes, check_processes, check_sendable, count_step, open_pool
from setpoint.pareto.front import Front, front_in
from setpoint.pareto.job import (
    ORDERS,
    Job,
    MakeOptimizer,
    Measure,
    Objectives,
    Order,
    PlannedPoint,
    names_of,
    read_losses,
    ready,
    source_of,
)
from setpoint.pareto.points import FrontPoint, Store
from setpoint.pareto.rules import (
    FRONT_METHODS,
    AtMost,
    FrontMethod,
    LexicographicEnd,
    PointRule,
    inner_rule,
)
from setpoint.train import ProgressLine

_SEED_STEP = 1_000_003  # points of one front draw different batches, and so do neighbouring seeds
_LAST_RATE, _CONSTANT_AT_ENDS = 0.01, 0.75

_ADVICE = "Finished points are kept if folder= was given; run it again."


def pareto_front(
    make_model: Callable[[], nn.Module],
    objectives: Objectives,
    data: Any = None,
    *,
    points: int = 20,
    steps: int = 500,
    end_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float = 0.01,
    optimizer: MakeOptimizer | None = None,
    method: FrontMethod = "barrier",
    order: Order = "tighten",
    seed: int = 0,
    measure: Measure | None = None,
    exact: bool | None = None,
    folder: str | Path | None = None,
    processes: Processes = 1,
    progress: bool = False,
) -> Front:
    """Models that trade one loss for another, evenly spaced along the one that is held.

    Two trainings find the ends: the held loss as small as it gets (and then the other), and the
    other way round. Between them every level ``c`` of an even grid is trained for: minimise one
    loss subject to the other being at most ``c``, starting from the neighbour's weights.

    Args:
        make_model: Makes a new model; called with the same random state each time.
        objectives: ``objectives(model, *batch)`` gives two scalar losses, the one to minimise and
            the one to hold: ``{"unfairness": f, "loss": g}``, or a plain pair.
        data: Tensors ``(x, y, ...)`` with a row for each example, an iterable of batches such as a
            DataLoader, or None if the objectives need only the model.
        points: How many, both ends included.
        steps: Batches that each point between the ends is trained on.
        end_steps: The same for the ends, which start from nothing; ten times ``steps`` by default.
        batch_size: Rows in a batch, for tensors; None takes all rows every step.
        learning_rate: Of Adam at first; it falls to a hundredth, at the ends in the last quarter.
        optimizer: Makes another optimizer from parameters, such as ``partial(SGD, lr=0.1)``; its
            rate falls in the same way.
        method: ``barrier``, or what to compare it with: ``linear`` (weights on an even grid, as
            they come), ``scaled linear`` (losses divided by their range between the ends) and
            ``tchebycheff`` (a smooth maximum). All share the ends, the budget and the route.
        order: Which neighbour a point starts from: ``tighten`` goes from the smallest minimised
            loss to the smallest held one, ``loosen`` back, ``inward`` from both ends (two
            processes), ``bisect`` by halves (many processes, longer jumps).
        seed: Decides first weights and batches.
        measure: Further numbers of each trained model, such as its test accuracy.
        exact: Whether a step sees all data, so that it can go straight to its level; by default as
            ``data`` says. Say False if ``data`` is None and the objectives draw batches.
        folder: Finished points are written there at once, and never trained again: after a crash
            call the function again. Other functions need another folder.
        processes: How many points may be trained at the same time on this machine, or ``"ray"``
            for a Ray cluster (the extra ``ray``) whose machines all see ``folder``.
        progress: Draw a bar on stderr.

    Returns:
        The front, with the weights of each point.

    Raises:
        ValueError: A loss is not finite, the folder holds another front, or the arguments are bad.

    Examples:
        >>> import torch
        >>> class Number(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.x = nn.Parameter(torch.tensor(0.3))
        >>> def losses(model):
        ...     return {"to one": (model.x - 1) ** 2, "to zero": model.x**2}
        >>> front = pareto_front(Number, losses, points=5, steps=100, learning_rate=0.05)
        >>> [round(point.held, 2) for point in front.points]
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    _choice(method, FRONT_METHODS, "method")
    _choice(order, ORDERS, "order")
    processes = check_processes(processes)
    source, steps = source_of(data, batch_size), whole(steps, "steps", least=1)
    job = Job(
        make_model=make_model,
        objectives=objectives,
        source=source,
        names=names_of(make_model, objectives, source),
        points=whole(points, "points", least=3),
        steps=steps,
        end_steps=whole(10 * steps if end_steps is None else end_steps, "end_steps", least=1),
        learning_rate=positive(learning_rate, "learning_rate"),
        optimizer=optimizer,
        method=method,
        order=order,
        seed=whole(seed, "seed", least=0),
        measure=measure,
        exact=source.exact if exact is None else bool(exact),
    )
    if folder is None:
        with TemporaryDirectory(prefix="setpoint-front-") as made:
            front = _train_missing(job, Store(Path(made), job.recipe()), processes, progress)
            return replace(front, state_dicts=list(front.state_dicts))  # before the files go
    front = _train_missing(job, Store(Path(folder), job.recipe()), processes, progress)
    write_file(Path(folder) / "front.json", front.to_json().encode())
    return front


def _choice(value: object, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def _train_missing(job: Job, store: Store, processes: Processes, shown: bool) -> Front:
    """Train what is missing and read the whole front; ``shown`` draws a bar."""
    line = ProgressLine(sum(map(job.steps_of, job.planned())), shown=shown)
    taken = 0

    def on_steps(count: int) -> None:
        nonlocal taken
        taken += count
        line.update(taken, "of the front")

    train_points(job, store, processes, on_steps)
    line.close()
    return front_in(store)


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
