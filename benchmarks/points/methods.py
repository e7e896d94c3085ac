"""The methods compared: what is trained (runs), and how the result is read (readings)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.points.ideas import IDEAS
from setpoint import Implicit, Problem, Sigmoid, Stratified
from setpoint.solvers import METHODS, cross_entropy, focal
from setpoint.train import Shuffled

Loss = Callable[..., Tensor]
TEMPERATURES = (0.5, 1.0, 5.0)  # the paper's grid
FLATNESS = (0.0, 0.05, 0.1)


@dataclass(frozen=True)
class Run:
    """One way to train: a loss for a goal (or for all), the batches, its own grid of settings."""

    loss: Callable[[Problem, int, float, dict[str, float]], Loss]
    sampler: Callable[[int], Any] = Shuffled
    direct: bool = False
    settings: tuple[dict[str, float], ...] = ({},)


class Reading(NamedTuple):
    """A run judged by its last or its averaged weights."""

    run: str
    averaged: bool


def _weighted(_goal: Problem, _steps: int, positives: float, _settings: dict[str, float]) -> Loss:
    """Cross-entropy with both classes of the same total weight."""
    heavy, light = 0.5 / positives, 0.5 / (1 - positives)

    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(scores, labels, weights=torch.where(labels > 0, heavy, light))

    return loss


def _published(goal: Problem, _steps: int, _positives: float, settings: dict[str, float]) -> Loss:
    return Implicit.as_published(goal, correct_every=10, correction_batches=1, **settings)


def _variant(options: dict[str, Any]) -> Callable[..., Loss]:
    return lambda goal, steps, *_: Implicit(goal, steps=steps, **options)


def _idea(made: Callable[..., Loss]) -> Callable[..., Loss]:
    return lambda goal, steps, *_: made(goal, steps=steps)


def _sampler_of(made: Any) -> Callable[[int], Any]:
    """The default's batches; what looks at the models has a stack of its own, to look at less."""
    alone = isinstance(made, type) and (hasattr(made, "see") or hasattr(made, "finish"))
    return partial(Stratified) if alone else Stratified


def _natural(size: int) -> Stratified:
    return Stratified(size, share=0.0)


RUNS = {
    "cross-entropy": Run(lambda *_: cross_entropy),
    "weighted": Run(_weighted),
    "focal": Run(lambda *_: focal),
    "resampled": Run(lambda *_: cross_entropy, METHODS["resampled"].sampler),
    "default": Run(lambda goal, steps, *_: Implicit(goal, steps=steps), Stratified, direct=True),
    "as published": Run(
        _published, direct=True, settings=tuple({"temperature": t} for t in TEMPERATURES)
    ),
    "paper's grid": Run(
        _published,
        direct=True,
        settings=tuple({"temperature": t, "flatness": f} for t in TEMPERATURES for f in FLATNESS),
    ),
}
FIRST = "first default"
FOCAL = "out of focal"
RUNS[FOCAL] = Run(_variant({"main": "focal"}), Stratified, direct=True)
RUNS[FIRST] = Run(_variant({"main": "focal"}), _natural, direct=True)
VARIANTS: dict[str, dict[str, Any]] = {
    "width 1/20 throughout": {"widening": 1.0},
    "width 1/4 throughout": {"widening": 1.0, "step": Sigmoid(width=0.25)},
    "out of cross-entropy": {"main": "cross_entropy"},
    "fade to 0.3": {"end": 0.3},
    "share 0.3": {"share": 0.3},
}
"""What else was tried: other values of the arguments of the first default."""
for _name, _options in VARIANTS.items():
    RUNS[_name] = Run(_variant({"main": "focal", **_options}), _natural, direct=True)
READINGS = {
    "cross-entropy": Reading("cross-entropy", averaged=False),
    "weighted": Reading("weighted", averaged=False),
    "focal": Reading("focal", averaged=False),
    "focal, averaged": Reading("focal", averaged=True),
    "resampled, averaged": Reading("resampled", averaged=True),
    "default": Reading("default", averaged=True),
    "as published": Reading("as published", averaged=False),
    "paper's grid": Reading("paper's grid", averaged=False),
}
READINGS |= {name: Reading(name, averaged=True) for name in (*VARIANTS, FIRST, FOCAL)}
for _name, _made in IDEAS.items():
    RUNS[_name] = Run(_idea(_made), _sampler_of(_made), direct=True)
    READINGS[_name] = Reading(_name, averaged=_name != "last weights")
RANKED = ("cross-entropy", "weighted", "focal", "focal, averaged", "resampled, averaged", "default")
BASELINES = tuple(name for name, reading in READINGS.items() if not RUNS[reading.run].direct)


class Column(NamedTuple):
    """One model of a stack."""

    run: str
    goal: str | None
    setting: int
    rate: float


def columns_of(runs: list[str], goals: list[str], rates: tuple[float, ...]) -> Iterator[Column]:
    """Every model to train; those of one loss stand beside each other."""
    for name in runs:
        run = RUNS[name]
        for goal in goals if run.direct else [None]:
            for setting in range(len(run.settings)):
                for rate in rates:
                    yield Column(name, goal, setting, rate)
