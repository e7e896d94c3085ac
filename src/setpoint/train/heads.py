"""Heads of a frozen body: trained on its features, and judged by rows they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from setpoint.problems import Infeasible, Problem, merit
from setpoint.solvers import Implicit
from setpoint.solvers.samplers import Stratified
from setpoint.train.features import Cached
from setpoint.train.loop import fit
from setpoint.train.validation import Validation, score

FOLDS = 3
Judged = tuple[nn.Module, Cached]
"""A head, and rows it is judged by."""


def trained_head(
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
    """A copy of the head, trained; with data that judge, its best pass."""
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


def by_folds(train: Callable[[Cached], nn.Module], data: Cached, seed: int) -> list[Judged]:
    """Heads, and rows that each has not seen; with too few of a class, the very rows it has."""
    labels = data.labels.reshape(len(data.labels), -1)[:, 0]
    if min((labels > 0).sum(), (labels <= 0).sum()) < FOLDS:
        return [(train(data), data)]
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    order = order[labels[order].argsort(stable=True)]  # in turns within each class
    fold = torch.empty_like(order)
    fold[order] = torch.arange(len(order)) % FOLDS
    return [(train(_rows(data, fold != k)), _rows(data, fold == k)) for k in range(FOLDS)]


def _rows(data: Cached, which: Tensor) -> Cached:
    which = which.to(data.features.device)
    weights = None if data.weights is None else data.weights[which]
    return Cached(data.features[which], data.labels[which], weights)


def merit_of(problem: Problem, head: nn.Module, data: Cached) -> float:
    """The goal's value by a head's scores; greater is better."""
    return merit(problem, score(head, data.features), data.labels, weights=data.weights)


def thresholds_of(problem: Problem, head: nn.Module, data: Cached) -> tuple[float, ...]:
    """The exact ones on these data, or an error that says what to do."""
    try:
        scores = score(head, data.features)
        chosen = problem.choose(scores, data.labels, weights=data.weights)
    except Infeasible:
        raise Infeasible(
            f"No threshold reaches `{problem}` on these data, with the old head or a new one. "
            "Loosen the target, or pass more data."
        ) from None
    found: tuple[float, ...] = chosen.thresholds
    return found
