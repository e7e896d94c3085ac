"""A trained network at a new operating point: its features are kept, its head is trained anew.

Features are computed once; after that a step is a step of a linear model, and a whole training
takes seconds. The same features serve the next operating point, too.

A head can be worse at its new point than the old one, when few rows lie near it. So rows that did
not train it decide: without any given, by cross-validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any

from torch import nn

from setpoint._checks import positive, whole
from setpoint.problems import Problem, check_plain
from setpoint.solvers import Split
from setpoint.solvers.last_layer.split import check_features, check_head
from setpoint.train.features import Cached, cached_features
from setpoint.train.heads import by_folds, merit_of, thresholds_of, trained_head

OF_GROUPS = (
    "Train the head by fit(head, Implicit(problem), features, labels, groups=...) on "
    "cached_features."
)


@dataclass(frozen=True)
class Retargeted:
    """A head at its new operating point.

    Attributes:
        thresholds: The exact thresholds on all rows of ``validation``, or without it of the loader.
        value: The goal's value on rows that did not train the head, at the best thresholds there.
        before: The same before the head was trained; the worst value of a rate, or an infinite one,
            where it cannot reach the goal.
        improved: Whether the new weights are better there; if not, the old ones were kept.
        seconds: How long all training took, features not counted.
    """

    thresholds: tuple[float, ...]
    value: float
    before: float
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
    kept only if they are better on rows that did not train them: those of ``validation``, or
    without it each third of ``loader`` by a head trained on the other two.

    Args:
        model: A trained model.
        head: Its last layer, or its name; None for the last layer of an ``nn.Sequential``.
        problem: The new operating point.
        loader: Gives ``(x, y)`` or ``(x, y, weights)``, or is a :class:`Cached` of an earlier
            :func:`cached_features`. Features of images that trained the body are separated too
            well to learn much from; a held-out part is better, and a few thousand rows of it.
        validation: Data that judge, likewise; the best pass by the goal's own metric is kept.
        steps: How many batches to train on.
        batch_size: Examples in a batch; all of them if there are fewer.
        learning_rate: Of Adam.
        seed: Decides which examples come in which batch.
    """
    check_plain(problem, "retarget", OF_GROUPS)
    split = model if isinstance(model, Split) else Split(model, head)
    check_head(split.head)
    data = _cached(split, loader)
    train = partial(
        trained_head,
        split.head,
        problem,
        steps=whole(steps, "steps", least=1),
        batch_size=whole(batch_size, "batch_size", least=1),
        learning_rate=positive(learning_rate, "learning_rate"),
        seed=seed,
    )
    start = perf_counter()
    if validation is None:
        judges, judged = data, by_folds(train, data, seed)
    else:
        judges = _cached(split, validation)
        judged = [(train(data, judges), judges)]
    old, new = (
        fmean(merit_of(problem, split.head if keep else head, rows) for head, rows in judged)
        for keep in (True, False)
    )
    chosen = split.head
    if new > old:
        chosen = train(data) if len(judged) > 1 else judged[0][0]
    seconds = perf_counter() - start
    thresholds = thresholds_of(problem, chosen, judges)
    split.head.load_state_dict(chosen.state_dict())
    value, before = (m if problem.maximize else -m for m in (max(new, old), old))
    return Retargeted(thresholds, value, before, new > old, seconds)


def _cached(split: Split, given: Iterable[Any] | Cached) -> Cached:
    found = given if isinstance(given, Cached) else cached_features(split, None, given)
    check_features(found.features, split.head)
    rows = len(found.features)
    for what, column in (("labels", found.labels), ("weights", found.weights)):
        if column is not None and len(column) != rows:
            raise ValueError(
                f"There are {rows} rows of features, but {len(column)} {what}; each row needs one."
            )
    return found
