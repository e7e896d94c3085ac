"""What a front is made of, checked once: plain data and the caller's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from setpoint.pareto.route import Leg, Order, route
from setpoint.pareto.rules import Method
from setpoint.pareto.sources import Source

Objectives = Callable[..., Any]
Measure = Callable[[nn.Module], Mapping[str, float]]
MakeOptimizer = Callable[[Iterable[Tensor]], Optimizer]


@dataclass(frozen=True)
class Job:
    """Everything that decides the numbers of a front."""

    make_model: Callable[[], nn.Module]
    objectives: Objectives
    source: Source
    names: tuple[str, str]
    points: int
    steps: int
    end_steps: int
    learning_rate: float
    optimizer: MakeOptimizer | None
    method: Method
    order: Order
    seed: int
    measure: Measure | None
    exact: bool

    def legs(self) -> tuple[Leg, ...]:
        """All points to train, in an order in which one process can."""
        return route(self.points, self.order)

    def steps_of(self, leg: Leg) -> int:
        """How many batches a point is trained on."""
        if leg.start is not None:
            return self.steps
        return self.end_steps + (self.steps if self.exact else 0)

    def fresh_model(self) -> nn.Module:
        """The caller's model; the same first weights for every end point."""
        torch.manual_seed(self.seed)
        return self.make_model()

    def make_optimizer(self, model: nn.Module) -> Optimizer:
        """The caller's, or Adam."""
        trained = [p for p in model.parameters() if p.requires_grad]
        return (
            Adam(trained, self.learning_rate) if self.optimizer is None else self.optimizer(trained)
        )

    def recipe(self) -> dict[str, Any]:
        """What must be the same for a folder to be continued: not the code of the functions."""
        with torch.random.fork_rng(devices=[]):
            weights = sha256()
            for name, tensor in self.fresh_model().state_dict().items():
                plain = torch.as_tensor(tensor).detach().cpu().contiguous()
                weights.update(f"{name} {tuple(plain.shape)} {plain.dtype}".encode())
                weights.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
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
            "model": f"sha256 {weights.hexdigest()[:16]}",
        }


def _name_of(function: Any) -> str:
    """What a function is called, and of a partial one what it was given."""
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
            f'{{"unfairness": f, "loss": g}}; got {_shown(found)}.'
        )
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.is_floating_point():
            raise TypeError(f"The objective {name!r} must be a scalar tensor; got {_shown(value)}.")
    return (names[0], names[1]), (values[0].reshape(()), values[1].reshape(()))


def names_of(
    make_model: Callable[[], nn.Module], objectives: Objectives, source: Source
) -> tuple[str, str]:
    """What the objectives call themselves, from a first look that changes nothing."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        for batch in source.draw(1, 0):
            return read_losses(objectives(make_model(), *batch))[0]
    raise ValueError("data gave no batch.")


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor of shape {tuple(value.shape)}"
    if isinstance(value, (Mapping, tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"
