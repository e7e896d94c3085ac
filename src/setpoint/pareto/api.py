"""``pareto_front``: both ends by lexicographic training, then the levels between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from setpoint._checks import positive, whole
from setpoint._files import write_file
from setpoint.distributed import Processes, check_processes
from setpoint.pareto.front import Front, front_in
from setpoint.pareto.job import ORDERS, Job, MakeOptimizer, Measure, Objectives, Order, names_of
from setpoint.pareto.rules import FRONT_METHODS, FrontMethod
from setpoint.pareto.sources import source_of
from setpoint.pareto.store import Store
from setpoint.pareto.training import train_points
from setpoint.train import ProgressLine


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
            front = _train(job, Store(Path(made), job.recipe()), processes, progress)
            return replace(front, state_dicts=list(front.state_dicts))  # before the files go
    front = _train(job, Store(Path(folder), job.recipe()), processes, progress)
    write_file(Path(folder) / "front.json", front.to_json().encode())
    return front


def _choice(value: object, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def _train(job: Job, store: Store, processes: Processes, shown: bool) -> Front:
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
