"""The job of a front, checked once: its data, its objectives, and the order of its points.

Batches come from tensors, from any iterable of batches, or from the objectives themselves. The ends
are trained first, then every point starts from a finished neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, get_args

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from setpoint._checks import whole
from setpoint.pareto.rules import FrontMethod
from setpoint.train import batches
from setpoint.train.checkpoints import tensor_digest

CallArguments = tuple[Any, ...]


class Source(Protocol):
    """The data that a front is trained on."""

    @property
    def exact(self) -> bool:
        """Whether every step sees all data, so that losses and gradients have no noise."""

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """Yield the arguments of ``steps`` calls of the objectives, after the model."""

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """All data, for evaluation: batches, and the weight of each."""

    def describe(self) -> str:
        """What must be the same for a folder to be continued."""


@dataclass(frozen=True)
class TensorRows:
    """Tensors with a row for each example; a step takes ``size`` of them, or all."""

    tensors: tuple[Tensor, ...]
    size: int | None

    @property
    def exact(self) -> bool:
        """Whether a batch is all rows."""
        return self.size is None or self.size >= len(self.tensors[0])

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """Pass after pass in a new order; all rows as they are if a batch is everything."""
        if self.size is None or self.exact:
            yield from [self.tensors] * steps
            return
        for rows in batches(len(self.tensors[0]), self.size, steps=steps, seed=seed):
            yield tuple(tensor[rows.to(tensor.device)] for tensor in self.tensors)

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """All rows at once: an objective need not be a mean over examples."""
        yield self.tensors, 1.0

    def describe(self) -> str:
        """The number of rows and of rows in a batch, and a digest of their content."""
        steps = "all at once" if self.exact else f"in batches of {self.size:,}"
        content = tensor_digest({str(place): part for place, part in enumerate(self.tensors)})
        return f"{len(self.tensors[0]):,} rows {steps}, sha256 {content}"


@dataclass(frozen=True)
class BatchLoader:
    """Batches of an iterable such as a DataLoader, from the beginning again when it ends."""

    batches: Iterable[Any]
    exact: bool = False

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """As they come; the point's own random state decides a shuffled order."""
        left = steps
        while left:
            before = left
            for batch in self.batches:
                if not left:
                    return
                left -= 1
                yield _arguments(batch)
            if left == before:
                raise ValueError("data gave no batch; pass tensors or an iterable with batches.")

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """Batch by batch, each counted by its rows."""
        for parts in map(_arguments, self.batches):
            rows = next(iter(parts[0].values())) if isinstance(parts[0], Mapping) else parts[0]
            yield parts, float(len(rows))

    def describe(self) -> str:
        """The type of the iterable: its content cannot be read without drawing it."""
        return type(self.batches).__name__


@dataclass(frozen=True)
class NoData:
    """The objectives need only the model: they draw their own batches, or need none."""

    exact: bool = True  # unless the caller says that they draw batches

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """For every step an empty tuple: the objectives take no batch."""
        yield from [()] * steps

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """One call without a batch, which stands for all data."""
        yield (), 1.0

    def describe(self) -> str:
        """Empty: there are no data that a resumed run could find changed."""
        return "none"


def source_of(data: Any, batch_size: int | None) -> Source:
    """``data`` as a source; raises if it is none."""
    if batch_size is not None:
        batch_size = whole(batch_size, "batch_size", least=1)
    if isinstance(data, Tensor):
        data = (data,)
    tensors = isinstance(data, Sequence) and len(data) > 0
    if tensors and all(isinstance(part, Tensor) and part.ndim > 0 for part in data):
        lengths = [len(part) for part in data]
        if len(set(lengths)) > 1 or not lengths[0]:
            raise ValueError(f"data must be tensors with as many rows each; got {lengths} rows.")
        return TensorRows(tuple(data), batch_size)
    if batch_size is not None:
        raise ValueError(
            f"batch_size={batch_size} needs data as tensors, such as data=(x, y); a loader has a "
            "batch size of its own."
        )
    if data is None:
        return NoData()
    if isinstance(data, Iterable) and not isinstance(data, Iterator):
        return BatchLoader(data)
    raise TypeError(
        "data must be tensors such as (x, y), a DataLoader or another iterable that can be read "
        "again and again, or None if the objectives need only the model; "
        f"got {type(data).__name__}."
    )


def _arguments(batch: Any) -> CallArguments:
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


Order = Literal["tighten", "loosen", "inward", "bisect"]
ORDERS: tuple[str, ...] = get_args(Order)


class PlannedPoint(NamedTuple):
    """One point to train: its place on the grid, and the place whose weights it starts from."""

    place: int
    start: int | None  # None: a fresh model


def plan_points(points: int, order: Order) -> tuple[PlannedPoint, ...]:
    """All points of a front; each comes after the one it starts from.

    A point depends only on its start and the two ends, so the result is the same on one process or
    on eight, and finished points need not be trained again.

    Args:
        points: How many, both ends included: place 0 has the smallest held objective.
        order: ``tighten`` goes from the last place down, ``loosen`` from the first place up,
            ``inward`` from both ends to the middle (two chains), ``bisect`` halves the widest gap
            (as many chains as there are processes, but longer jumps).

    Examples:
        >>> [tuple(point) for point in plan_points(5, "inward")]
        [(0, None), (4, None), (1, 0), (3, 4), (2, 1)]
    """
    last = points - 1
    ends = [PlannedPoint(0, None), PlannedPoint(last, None)]
    if order == "tighten":
        inner = [PlannedPoint(place, place + 1) for place in range(last - 1, 0, -1)]
    elif order == "loosen":
        inner = [PlannedPoint(place, place - 1) for place in range(1, last)]
    elif order == "inward":
        middle = last / 2
        inner = [PlannedPoint(p, p - 1) for p in range(1, last) if p <= middle]
        inner += [PlannedPoint(p, p + 1) for p in range(last - 1, 0, -1) if p > middle]
        inner.sort(key=lambda point: min(point.place, last - point.place))
    else:
        inner = list(_halves(0, last))
    return (*ends, *inner)


def ready(planned: Collection[PlannedPoint], done: Collection[int]) -> list[PlannedPoint]:
    """The points that can be trained now: not done, and both ends and their own start are."""
    ends = [point.place for point in planned if point.start is None]
    ends_done = all(place in done for place in ends)
    return [
        point
        for point in planned
        if point.place not in done and (point.start is None or (ends_done and point.start in done))
    ]


def _halves(low: int, high: int) -> Iterator[PlannedPoint]:
    """The middle of every open gap, widest gaps first; it starts from the upper neighbour."""
    gaps = [(low, high)]
    while gaps:
        below, above = gaps.pop(0)
        if above - below > 1:
            middle = (below + above + 1) // 2
            yield PlannedPoint(middle, above)
            gaps += [(below, middle), (middle, above)]


Objectives = Callable[..., Any]
Measure = Callable[[nn.Module], Mapping[str, float]]
MakeOptimizer = Callable[[Iterable[Tensor]], Optimizer]


@dataclass(frozen=True)
class Job:
    """Everything that decides the numbers of a front: plain data and the caller's functions."""

    make_model: Callable[[], nn.Module]
    objectives: Objectives
    source: Source
    names: tuple[str, str]
    points: int
    steps: int
    end_steps: int
    learning_rate: float
    optimizer: MakeOptimizer | None
    method: FrontMethod
    order: Order
    seed: int
    measure: Measure | None
    exact: bool

    def planned(self) -> tuple[PlannedPoint, ...]:
        """All points to train, in an order in which one process can."""
        return plan_points(self.points, self.order)

    def steps_of(self, point: PlannedPoint) -> int:
        """The number of batches that a point is trained on."""
        if point.start is not None:
            return self.steps
        return self.end_steps + (self.steps if self.exact else 0)

    def fresh_model(self) -> nn.Module:
        """The caller's model; the same first weights for every end point."""
        torch.manual_seed(self.seed)
        return self.make_model()

    def make_optimizer(self, model: nn.Module) -> Optimizer:
        """The optimizer that the caller makes, or Adam."""
        trained = [p for p in model.parameters() if p.requires_grad]
        return (
            Adam(trained, self.learning_rate) if self.optimizer is None else self.optimizer(trained)
        )

    def recipe(self) -> dict[str, Any]:
        """What must be the same for a folder to be continued; not the code of the functions."""
        with torch.random.fork_rng(devices=[]):
            weights = tensor_digest(self.fresh_model().state_dict())
        return {
            "names": list(self.names),
            "method": self.method,
            "points": self.points,
            "steps": self.steps,
            "end_steps": self.end_steps,
            "learning_rate": self.learning_rate,
            "optimizer": "Adam" if self.optimizer is None else _name_of(self.optimizer),
            "order": self.order,
            "exact": self.exact,
            "seed": self.seed,
            "data": self.source.describe(),
            "model": f"sha256 {weights}",
        }


def _name_of(function: Any) -> str:
    """The name of a function, and of a partial one its arguments."""
    if isinstance(function, partial):
        return f"{_name_of(function.func)} {function.args} {function.keywords}"
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def read_losses(found: Any) -> tuple[tuple[str, str], tuple[Tensor, Tensor]]:
    """Names and values of the two objectives, or an error that says what came instead."""
    if isinstance(found, Mapping):
        names, values = tuple(map(str, found)), tuple(found.values())
    elif isinstance(found, (tuple, list)):
        names, values = ("minimized", "held"), tuple(found)
    else:
        names, values = (), (found,)
    if len(values) != 2:
        raise ValueError(
            "objectives must return two losses, the one to minimise and the one to hold, such as "
            f'{{"unfairness": f, "loss": g}}; got {_kind_of_value(found)}.'
        )
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.is_floating_point():
            raise TypeError(
                f"The objective {name!r} must be a scalar tensor; got {_kind_of_value(value)}."
            )
    return (names[0], names[1]), (values[0].reshape(()), values[1].reshape(()))


def names_of(
    make_model: Callable[[], nn.Module], objectives: Objectives, source: Source
) -> tuple[str, str]:
    """The names of the objectives, from one evaluation that changes nothing."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        for batch in source.draw(1, 0):
            return read_losses(objectives(make_model(), *batch))[0]
    raise ValueError("data gave no batch.")


def _kind_of_value(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor of shape {tuple(value.shape)}"
    if isinstance(value, (Mapping, tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"
