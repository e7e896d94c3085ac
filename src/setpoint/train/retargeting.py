"""A trained network at a new operating point: its features are kept, only its head is trained.

Features are computed once; after that a step is a step of a linear model, and a whole training
takes seconds. The same features serve the next operating point, too.

A new head can be worse than the old one when few rows lie near the new operating point. So rows
that did not train it decide which is kept: by cross-validation if none are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from setpoint._checks import positive, whole
from setpoint.problems import GoalLike, Infeasible, Problem, as_problem, check_plain, merit
from setpoint.solvers import Implicit, Split
from setpoint.solvers.samplers import Stratified
from setpoint.solvers.split import check_features, check_head
from setpoint.train.loop import fit
from setpoint.train.validation import Validation, evaluating, score

_FOLDS = 3
_OTHERWISE = (
    "Train the head by fit(head, Implicit(problem), features, labels, groups=...) on "
    "cached_features."
)


class Cached(NamedTuple):
    """Features ``[n, ...]`` that the body of a network computed, labels, and optional weights."""

    features: Tensor
    labels: Tensor
    weights: Tensor | None = None


@torch.no_grad()
def cached_features(
    model: nn.Module, head: nn.Module | str | None, loader: Iterable[Any]
) -> Cached:
    """The features of all examples of a loader, in evaluation mode.

    Args:
        model: A trained model.
        head: Its last layer, or its name; None for the last layer of an ``nn.Sequential``.
        loader: Gives ``(x, y)`` or ``(x, y, weights)``, batch by batch.

    Raises:
        TypeError: The loader gives something else.
        ValueError: The loader gives nothing.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> x, y = torch.randn(20, 4), torch.arange(20) % 2
        >>> cached_features(model, None, [(x, y)]).features.shape
        torch.Size([20, 8])
    """
    split = model if isinstance(model, Split) else Split(model, head)
    parts: list[tuple[Tensor, ...]] = []
    with evaluating(split):
        for batch in loader:
            if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
                raise TypeError(
                    "The loader must give (x, y) or (x, y, weights); "
                    f"got {type(batch).__name__}. Wrap it in a generator that does."
                )
            features = split.features(batch[0])
            check_features(features, split.head)
            parts.append((features, *map(torch.as_tensor, batch[1:])))
    if not parts:
        raise ValueError("The loader gave no batch: nothing to train the head on.")
    return Cached(*(torch.cat(column) for column in zip(*parts, strict=True)))


_HeadAndRows = tuple[nn.Module, Cached]
"""A head, and rows it is judged by."""


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
    problem: GoalLike,
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
        validation: Data like ``loader`` that decide which pass, and which head, is kept.
        steps: How many batches to train on.
        batch_size: Examples in a batch; all of them if there are fewer.
        learning_rate: Of Adam.
        seed: Decides which examples come in which batch.

    Raises:
        Infeasible: No threshold reaches the goal, with the old head or the new one.
        NotImplementedError: The goal is about groups, classes or queries.

    Examples:
        >>> _ = torch.manual_seed(0)
        >>> x = torch.randn(600, 4)
        >>> y = (x[:, 0] + 0.5 * torch.randn(600) > 1).long()
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> found = retarget(model, None, "minimize fnr subject to fpr <= 0.1", [(x, y)], steps=50)
        >>> found.improved, found.value < found.before
        (True, True)
    """
    problem = as_problem(problem, "retarget")
    check_plain(problem, "retarget", _OTHERWISE)
    split = model if isinstance(model, Split) else Split(model, head)
    check_head(split.head)
    data = _cached(split, loader)
    train = partial(
        _trained_head,
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
    old = fmean(_merit(problem, split.head, rows) for _, rows in judged)
    new = fmean(_merit(problem, trained, rows) for trained, rows in judged)
    chosen = split.head
    if new > old:
        chosen = train(data) if len(judged) > 1 else judged[0][0]
    seconds = perf_counter() - start
    thresholds = _exact_thresholds(problem, chosen, judges)
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


def _trained_head(
    head: nn.Module,
    problem: Problem,
    data: Cached,
    judges: Cached | None = None,
    *,
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> nn.Module:
    """A trained copy of the head; with ``judges``, its best pass on them."""
    return fit(
        deepcopy(head).requires_grad_().train(),
        Implicit(problem, steps=steps),
        *data[:2],
        steps=steps,
        batch_size=batch_size,
        sampler=Stratified(batch_size),
        learning_rate=learning_rate,
        seed=seed,
        weights=data.weights,
        validation=None if judges is None else Validation(problem, *judges),
    ).model


def by_folds(train: Callable[[Cached], nn.Module], data: Cached, seed: int) -> list[_HeadAndRows]:
    """Three heads, each with the third of the rows that did not train it.

    If a class has fewer than three rows: one head, with the very rows that trained it.
    """
    labels = data.labels.reshape(len(data.labels), -1)[:, 0]
    if min((labels > 0).sum(), (labels <= 0).sum()) < _FOLDS:
        return [(train(data), data)]
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    order = order[labels[order].argsort(stable=True)]  # each class is dealt out in turn
    fold = torch.empty_like(order)
    fold[order] = torch.arange(len(order)) % _FOLDS
    return [(train(_rows(data, fold != k)), _rows(data, fold == k)) for k in range(_FOLDS)]


def _rows(data: Cached, which: Tensor) -> Cached:
    which = which.to(data.features.device)
    weights = None if data.weights is None else data.weights[which]
    return Cached(data.features[which], data.labels[which], weights)


def _merit(problem: Problem, head: nn.Module, data: Cached) -> float:
    """The goal's value with a head's scores; greater is better."""
    return merit(problem, score(head, data.features), data.labels, weights=data.weights)


def _exact_thresholds(problem: Problem, head: nn.Module, data: Cached) -> tuple[float, ...]:
    """The exact thresholds on these data, or an error that says what to do."""
    scores = score(head, data.features)
    try:
        found: tuple[float, ...]
        found = problem.choose(scores, data.labels, weights=data.weights).thresholds
    except Infeasible:
        raise Infeasible(
            f"No threshold reaches `{problem}` on these data, with the old head or a new one. "
            "Loosen the target, or pass more data."
        ) from None
    return found
