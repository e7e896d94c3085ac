"""Methods by name: a criterion and the batches it is trained on, with the same budget for all.

The estimators, the command line and comparisons train by these names. To add a method, add one
entry to :data:`METHODS` (to :data:`CLASS_METHODS` for goals about several classes):
``"name": Method(lambda problem, steps: ...)``, or, if the criterion must know the model,
``Method(on=lambda model, problem, steps: (model, ...))``. A solver that is named as
``solvers.Lagrangian`` is imported when a method makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import setpoint.solvers as solvers
from setpoint.losses.log_likelihood import (
    class_cross_entropy,
    class_focal,
    cross_entropy,
    focal,
)
from setpoint.problems import Problem, roc_auc
from setpoint.rates import auc_mu, f_score
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.samplers import (
    Classwise,
    Sampler,
    Shuffled,
    Stratified,
    Unweighted,
)
from setpoint.steps import Sigmoid

Criterion = Callable[..., Tensor]
"""Called as ``criterion(scores, labels, ...)``; returns the loss of the batch."""


def _natural(size: int) -> Sampler:
    """Batches as they come, with at least 20 examples of the rarer class."""
    return Stratified(size, share=0.0)


@dataclass(frozen=True)
class Method:
    """How to make the module that is trained, and its criterion.

    Args:
        criterion: Makes the criterion from a problem and the number of training steps.
        sampler: Makes the sampler from a batch size. By default batches come as they are, with at
            least 20 examples of the rarer class.
        on: Instead of ``criterion``: makes the module to train and its criterion from a model, a
            problem and the number of training steps.
    """

    criterion: Callable[[Problem, int], Criterion] | None = None
    sampler: Callable[[int], Sampler] = _natural
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
class _LastLayer:
    """Hold by the linear layer with one output; a model that is only that layer trains as a whole.

    Args:
        name: The name of the method, for errors.
        body: Makes the loss of the other layers.
    """

    name: str
    body: Callable[[], solvers.CrossEntropy | solvers.Penalty]

    def __call__(
        self, model: nn.Module, problem: Problem, steps: int
    ) -> tuple[nn.Module, Criterion]:
        """The split model, and its criterion; ValueError if there is no such layer, or several."""
        heads = {
            name: part
            for name, part in model.named_modules()
            if isinstance(part, nn.Linear) and part.out_features == 1
        }
        if not heads:
            raise ValueError(
                f"The method {self.name!r} needs an nn.Linear with one output at the end."
            )
        (name, head), *others = heads.items()
        if others:  # the order in which a model registers its parts says nothing about the last
            listed = ", ".join(map(repr, heads))
            raise ValueError(
                f"The method {self.name!r} cannot tell which is the head: {listed} have one output "
                "each. Name it by a method of your own, Method(on=lambda model, problem, steps: "
                f'(split := Split(model, "{name}"), LastLayer(problem, split, steps=steps))).'
            )
        mine = {id(p) for p in head.parameters()}
        if all(id(p) in mine for p in model.parameters()):
            return model, Implicit(problem, steps=steps)
        split = solvers.Split(model, head)
        return split, solvers.LastLayer(problem, split, body=self.body(), steps=steps)


def _published(model: nn.Module, problem: Problem, _steps: int) -> tuple[nn.Module, Criterion]:
    """ICO as published for tables: a correction every ten steps, the linear update in between.

    Areas have several thresholds, which the paper does not follow. Thresholds of groups, classes
    and queries are found on every batch.
    """
    if problem.kind != "everyone":
        return model, Implicit(problem, share=0.0, step=Sigmoid(temperature=1.0))
    follow = model.parameters() if len(problem.points) == 1 else None
    return model, Implicit.as_published(problem, correct_every=10, follow=follow)


def _barrier_printed(model: nn.Module, problem: Problem, _: int) -> tuple[nn.Module, Criterion]:
    """The dynamic barrier as published, without our correction for minibatches."""
    barrier = solvers.Barrier(model.parameters(), rule="printed")
    return model, solvers.RateBarrier(problem, barrier=barrier)


def _oversampled(size: int) -> Sampler:
    """A fifth of every batch is the rarer class, without importance weights."""
    return Unweighted(Stratified(size))


def _equal_classes(size: int) -> Sampler:
    """The same number of examples of every class in every batch, without importance weights."""
    return Unweighted(Classwise(size, least=size))


def balanced_cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy in which every class of the batch has the same total weight."""
    own = torch.ones_like(scores[:, 0]) if weights is None else weights.to(scores.dtype)
    totals = own.new_zeros(scores.shape[1]).index_add(0, labels, own)
    return class_cross_entropy(scores, labels, own / totals[labels])


METHODS: dict[str, Method] = {
    "implicit": Method(lambda problem, steps: Implicit(problem, steps=steps), Stratified),
    "cross_entropy": Method(lambda _problem, _steps: cross_entropy),
    "focal": Method(lambda _problem, _steps: focal),
    "weighted": Method(lambda problem, _steps: solvers.CrossEntropy(problem, positives="balanced")),
    "last_layer": Method(on=_LastLayer("last_layer", lambda: solvers.CrossEntropy())),
    "lagrangian": Method(lambda problem, _steps: solvers.Lagrangian(problem)),
    "proxy_lagrangian": Method(lambda problem, _steps: solvers.Lagrangian(problem, proxy=True)),
    "pairwise": Method(lambda problem, _steps: solvers.Pairwise(problem)),
    "barrier": Method(
        on=lambda model, problem, _: (model, solvers.RateBarrier(problem, model.parameters()))
    ),
    "barrier_printed": Method(on=_barrier_printed),
    "program": Method(lambda problem, _steps: solvers.Program(problem)),
    "resampled": Method(lambda _problem, _steps: cross_entropy, _oversampled),
    # published methods by the names of their papers
    "ico": Method(on=_published),
    "slack": Method(
        lambda problem, steps: solvers.SlackVariables(problem, steps=steps), Stratified
    ),
    "fico_1": Method(on=_LastLayer("fico_1", lambda: solvers.CrossEntropy())),
    "fico_2": Method(on=_LastLayer("fico_2", lambda: solvers.Penalty())),
    "fico_ablation": Method(
        on=_LastLayer("fico_ablation", lambda: solvers.Penalty(everywhere=True))
    ),
    "tfco": Method(lambda problem, _steps: solvers.Lagrangian(problem, proxy=True)),
    "lp_auc": Method(lambda _problem, _steps: solvers.Program(roc_auc())),
    "lp_f1": Method(lambda _problem, _steps: solvers.Program(Problem(maximize=f_score(1.0)))),
}

CLASS_METHODS: dict[str, Method] = {
    "implicit": Method(lambda problem, steps: Implicit(problem, steps=steps), Shuffled),
    "cross_entropy": Method(lambda _problem, _steps: class_cross_entropy, Shuffled),
    "focal": Method(lambda _problem, _steps: class_focal, Shuffled),
    "adjusted": Method(lambda problem, _steps: solvers.Adjusted(problem), Shuffled),
    "weighted": Method(lambda _problem, _steps: balanced_cross_entropy, Classwise),
    "resampled": Method(lambda _problem, _steps: class_cross_entropy, _equal_classes),
    "ico": Method(on=_published, sampler=Shuffled),
    "lp_auc": Method(lambda _problem, _steps: solvers.Program(Problem(maximize=auc_mu)), Shuffled),
}
"""Methods for goals about several classes."""

PORTFOLIO = ("implicit", "cross_entropy")
"""What the name ``auto`` tries: half of a run by cross-entropy, the other half by the implicit
loss; the best pass of both is kept."""


def methods_named(name: str, kind: str = "everyone") -> dict[str, Method]:
    """The method with this name, or those of the portfolio for ``auto``.

    Args:
        name: The name of a method, or ``auto``.
        kind: The kind of the problem; ``"classes"`` has its own methods.

    Raises:
        ValueError: There is no such method; the message lists all names.
    """
    methods = CLASS_METHODS if kind == "classes" else METHODS
    if name == "auto":
        return {member: methods[member] for member in PORTFOLIO}
    if name in METHODS and name not in methods:
        able = ", ".join(map(repr, methods))
        raise ValueError(
            f"The method {name!r} trains for goals about two classes; for several there are {able}."
        )
    if name not in methods:
        known = ", ".join(map(repr, [*methods, "auto"]))
        raise ValueError(f"method must be one of {known}; got {name!r}.")
    return {name: methods[name]}
