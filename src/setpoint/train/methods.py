"""Methods by name: a loss and the batches it is trained on, the same budget for all.

The estimators, the command line and comparisons train by these names. Another solver joins with
one line: ``METHODS["name"] = Method(lambda problem, steps: ...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from setpoint.problems import Problem
from setpoint.solvers import (
    CrossEntropy,
    Implicit,
    Lagrangian,
    Pairwise,
    Program,
    cross_entropy,
    focal,
)
from setpoint.train.loop import Criterion
from setpoint.train.samplers import Batch, Sampler, Stratified


@dataclass(frozen=True)
class Method:
    """How to make the criterion of a problem, and whether batches tell the true prevalence."""

    criterion: Callable[[Problem, int], Criterion]
    corrected: bool = True

    def sampler(self, batch_size: int) -> Sampler:
        """The batches of this method."""
        return Stratified(batch_size) if self.corrected else Enriched(batch_size)


@dataclass(frozen=True)
class Enriched:
    """A fifth of every batch is the rarer class, and nobody is told: the classic resampling."""

    size: int

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """So many batches of the examples that have these labels."""
        always = Stratified(self.size, least=round(0.2 * self.size), share=0.2)
        return (Batch(rows, None) for rows, _ in always.draw(labels, steps=steps, seed=seed))


METHODS: dict[str, Method] = {
    "implicit": Method(lambda problem, steps: Implicit(problem, steps=steps)),
    "cross_entropy": Method(lambda _problem, _steps: cross_entropy),
    "focal": Method(lambda _problem, _steps: focal),
    "weighted": Method(lambda problem, _steps: CrossEntropy(problem, positives="balanced")),
    "lagrangian": Method(lambda problem, _steps: Lagrangian(problem)),
    "proxy_lagrangian": Method(lambda problem, _steps: Lagrangian(problem, proxy=True)),
    "pairwise": Method(lambda problem, _steps: Pairwise(problem)),
    "program": Method(lambda problem, _steps: Program(problem)),
    "resampled": Method(lambda _problem, _steps: cross_entropy, corrected=False),
}


PORTFOLIO = ("focal", "resampled", "implicit")
"""What the name ``auto`` tries: the two strongest baselines and ours."""


def methods_named(name: str) -> dict[str, Method]:
    """The method of this name, several for ``auto``, or an error that lists all."""
    if name == "auto":
        return {member: METHODS[member] for member in PORTFOLIO}
    if name not in METHODS:
        known = ", ".join(map(repr, [*METHODS, "auto"]))
        raise ValueError(f"method must be one of {known}; got {name!r}.")
    return {name: METHODS[name]}
