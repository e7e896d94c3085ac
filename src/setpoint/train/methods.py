"""Methods by name: a loss and the batches it is trained on, the same budget for all.

The estimators, the command line and comparisons train by these names. Another solver joins with
one line: ``METHODS["name"] = Method(lambda problem, steps: ...)``, or, if its criterion must know
the model, ``Method(on=lambda model, problem, steps: (model, ...))``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from setpoint.problems import Problem
from setpoint.solvers import (
    CrossEntropy,
    Implicit,
    Lagrangian,
    LastLayer,
    Pairwise,
    Program,
    RateBarrier,
    Split,
    cross_entropy,
    focal,
)
from setpoint.train.loop import Criterion
from setpoint.train.samplers import Batch, Sampler, Stratified


def _as_they_come(size: int) -> Sampler:
    return Stratified(size, share=0.0)


@dataclass(frozen=True)
class Method:
    """How to make what is trained and its criterion.

    Args:
        criterion: Of a problem and a number of steps.
        sampler: The batches of a size. As they come by default, with 20 of the rarer class at
            least.
        on: Instead of ``criterion``: what is trained, and its criterion, of a model, a problem and
            a number of steps.
    """

    criterion: Callable[[Problem, int], Criterion] | None = None
    sampler: Callable[[int], Sampler] = _as_they_come
    on: Callable[[nn.Module, Problem, int], tuple[nn.Module, Criterion]] | None = None

    def __post_init__(self) -> None:
        if (self.criterion is None) == (self.on is None):
            raise TypeError("A method is made by criterion= or by on=: give one of the two.")

    def build(self, model: nn.Module, problem: Problem, steps: int) -> tuple[nn.Module, Criterion]:
        """The module to train (``model``, or one around it that shares its weights) and the loss.

        Raises:
            NotImplementedError, TypeError, ValueError: The method cannot express the problem.
        """
        if self.on is not None:
            return self.on(model, problem, steps)
        assert self.criterion is not None
        return model, self.criterion(problem, steps)


@dataclass(frozen=True)
class Enriched:
    """A fifth of every batch is the rarer class, and nobody is told: the classic resampling."""

    size: int

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """So many batches of the examples that have these labels."""
        drawn = Stratified(self.size).draw(labels, steps=steps, seed=seed)
        return (Batch(rows, None) for rows, _ in drawn)


def _gives_one_score(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear) and part.out_features == 1


def _by_last_layer(model: nn.Module, problem: Problem, steps: int) -> tuple[nn.Module, Criterion]:
    """Hold by the linear layer that gives one score; a model that is nothing else, by all."""
    heads = {n: m for n, m in model.named_modules() if _gives_one_score(m)}
    if not heads:
        raise ValueError("The method 'last_layer' needs an nn.Linear with one output at the end.")
    (name, head), *others = heads.items()
    if others:  # the order in which a model registers its parts says nothing about which is last
        raise ValueError(
            f"The method 'last_layer' cannot tell which is the head: {', '.join(map(repr, heads))} "
            "have one output each. Name it by a method of your own, Method(on=lambda model, "
            f'problem, steps: (split := Split(model, "{name}"), LastLayer(problem, split, '
            "steps=steps)))."
        )
    mine = {id(p) for p in head.parameters()}
    if all(id(p) in mine for p in model.parameters()):
        return model, Implicit(problem, steps=steps)
    split = Split(model, head)
    return split, LastLayer(problem, split, steps=steps)


METHODS: dict[str, Method] = {
    "implicit": Method(lambda problem, steps: Implicit(problem, steps=steps), Stratified),
    "cross_entropy": Method(lambda _problem, _steps: cross_entropy),
    "focal": Method(lambda _problem, _steps: focal),
    "weighted": Method(lambda problem, _steps: CrossEntropy(problem, positives="balanced")),
    "last_layer": Method(on=_by_last_layer),
    "lagrangian": Method(lambda problem, _steps: Lagrangian(problem)),
    "proxy_lagrangian": Method(lambda problem, _steps: Lagrangian(problem, proxy=True)),
    "pairwise": Method(lambda problem, _steps: Pairwise(problem)),
    "barrier": Method(
        on=lambda model, problem, _: (model, RateBarrier(problem, model.parameters()))
    ),
    "program": Method(lambda problem, _steps: Program(problem)),
    "resampled": Method(lambda _problem, _steps: cross_entropy, Enriched),
}


PORTFOLIO = ("focal", "resampled", "implicit")
"""What the name ``auto`` tries: the two strongest baselines and ours."""


def methods_named(name: str, kind: str = "plain") -> dict[str, Method]:
    """The method of this name, several for ``auto``, or an error that lists all.

    Args:
        name: Of a method.
        kind: Of the problem: goals about classes have methods of their own.
    """
    methods = METHODS
    if kind == "classes":
        from setpoint.train.class_methods import CLASS_METHODS as methods
    if name == "auto":
        return {member: methods[member] for member in PORTFOLIO}
    if name not in methods:
        known = ", ".join(map(repr, [*methods, "auto"]))
        raise ValueError(f"method must be one of {known}; got {name!r}.")
    return {name: methods[name]}
