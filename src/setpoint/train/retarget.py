"""A trained network at a new operating point: its features are kept, its head is trained anew.

Features are computed once; after that a step is a step of a linear model, and a whole training
takes seconds. The same features serve the next operating point, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from torch import nn

from setpoint._checks import whole
from setpoint.problems import Choice, Infeasible, Problem
from setpoint.solvers import Implicit, Split
from setpoint.solvers.last_layer.split import check_features, check_head
from setpoint.train.features import Cached, cached_features
from setpoint.train.loop import fit
from setpoint.train.samplers import Stratified
from setpoint.train.validation import Validation, score


@dataclass(frozen=True)
class Retargeted:
    """A head at its new operating point.

    Attributes:
        thresholds: The exact thresholds on the data that judge.
        value: The goal's value there, at these thresholds.
        before: The value the head had before it was trained (None: it could not reach the goal).
        improved: Whether the new weights are better there; if not, the old ones were kept.
        seconds: How long the training took, features not counted.
    """

    thresholds: tuple[float, ...]
    value: float
    before: float | None
    improved: bool
    seconds: float


def retarget(
    model: nn.Module,
    head: nn.Module | str | None,
    problem: Problem,
    loader: Iterable[Any] | Cached,
    *,
    validation: Iterable[Any] | Cached | None = None,
    steps: int = 300,
    batch_size: int = 4096,
    learning_rate: float = 0.01,
    seed: int = 0,
) -> Retargeted:
    """Train only the head of a trained model for another operating point, in place.

    The body is frozen: no other weight, and no statistic of it, is changed. The new weights are
    kept only if they are better on the data that judge: those of ``validation``, or without it
    those of ``loader``.

    Args:
        model: A trained model.
        head: Its last layer, or its name; None for the last layer of an ``nn.Sequential``.
        problem: The new operating point.
        loader: Gives ``(x, y)`` or ``(x, y, weights)``, or is a :class:`Cached` of an earlier
            :func:`cached_features`. Features of images that trained the body are separated too
            well to learn much from; a held-out part is better.
        validation: Data that judge, likewise; the best pass by the goal's own metric is kept.
        steps: How many batches to train on.
        batch_size: Examples in a batch; all of them if there are fewer.
        learning_rate: Of Adam.
        seed: Decides which examples come in which batch.
    """
    split = model if isinstance(model, Split) else Split(model, head)
    check_head(split.head)
    data = _cached(split, loader)
    judges = data if validation is None else _cached(split, validation)
    start = perf_counter()
    steps = whole(steps, "steps", least=1)
    trained = fit(
        _trainable_copy(split.head),
        Implicit(problem, steps=steps),
        *data[:2],
        steps=steps,
        batch_size=batch_size,
        sampler=Stratified(batch_size),
        learning_rate=learning_rate,
        seed=seed,
        weights=data.weights,
        validation=None if validation is None else Validation(problem, *judges),
    ).model
    seconds = perf_counter() - start
    old, new = (_judge(problem, part, judges) for part in (split.head, trained))
    if old is None and new is None:
        raise Infeasible(
            f"No threshold reaches `{problem}` on these data, with the old head or a new one. "
            "Loosen the target, or pass more data."
        )
    improved = new is not None and (old is None or _better(problem, new.value, old.value))
    chosen = new if improved else old
    assert chosen is not None
    if improved:
        split.head.load_state_dict(trained.state_dict())
    before = None if old is None else old.value
    return Retargeted(chosen.thresholds, chosen.value, before, improved, seconds)


def _cached(split: Split, given: Iterable[Any] | Cached) -> Cached:
    found = given if isinstance(given, Cached) else cached_features(split, None, given)
    check_features(found.features, split.head)
    return found


def _trainable_copy(head: nn.Module) -> nn.Module:
    return deepcopy(head).requires_grad_().train()


def _judge(problem: Problem, head: nn.Module, data: Cached) -> Choice | None:
    """The exact thresholds and the value they give, if the goal can be reached."""
    try:
        return problem.choose(score(head, data.features), data.labels, weights=data.weights)
    except Infeasible:
        return None


def _better(problem: Problem, value: float, than: float) -> bool:
    return value > than if problem.maximize else value < than
