"""Cross-fitting: on few rows every row trains, and every row chooses.

A validation part of a few hundred rows decides little, and its rows are missed in training. Here
the rows are dealt into three folds; each kind of model is trained on two of them and stopped on the
third, three times. The score of a row by the model that has not seen it stands for its score by all
three. So the weights of the sum, the calibration and the choice of a threshold rest on all rows,
and the model is the sum of the means of three models of each kind.
``python -m benchmarks study.cross_fitting`` compares it with one validation part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.distributed import workers
from setpoint.train.portfolio import Best
from setpoint.train.stacking import Stacked, best_of_sum, weigh
from setpoint.train.validation import Validation, score

FOLDS = 3
STEPS_OF_FOLD = 500
"""Steps of one model of a fold, if no number of passes is given: three cost what one did."""
MOST_ROWS = 10_000
"""Of more rows one part is enough to choose by."""

Folds = NDArray[np.int64]
FitFold = Callable[[str, Validation, Validation, int], Best]
"""Trains a kind of model on the rows of the first, judged by the second; last, the fold."""


@dataclass(frozen=True)
class CrossFitted:
    """What was trained, and what is known of its rows.

    Attributes:
        best: The sum, and its value on the scores below.
        members: Every model that was trained, by kind and fold: ``linear_0``.
        scores: The score of each row by the models that have not seen it.
    """

    best: Best
    members: dict[str, Best]
    scores: Tensor


def pays(rows: int, times: Any) -> bool:
    """Whether to cross-fit: on few rows, if no times say that later rows choose, on one rank."""
    return rows <= MOST_ROWS and times is None and workers() == 1


def folds_for(rows: Validation, clusters: Any, seed: int) -> Folds | None:
    """The fold of each row; None if a fold would lack a class, or what the goal speaks of.

    A positive or two in a fold choose little, but where that is all there is, the other way is to
    choose by the rows that trained: then trees that know them by heart have all the weight.

    Args:
        rows: All rows to learn from, and the goal.
        clusters: The number of the cluster of each row, which stays whole; or None.
        seed: Deals the rows.
    """
    labels = rows.y.cpu().numpy()
    folds = deal_folds(labels, clusters, np.random.RandomState(seed))
    counts = [np.bincount(labels[folds == f], minlength=labels.max() + 1) for f in range(FOLDS)]
    if np.min(counts) == 0:
        return None
    try:
        for _, held in _pairs(rows, folds):
            held.check()
    except ValueError:
        return None
    return folds


def deal_folds(labels: NDArray[Any], clusters: Any, random: np.random.RandomState) -> Folds:
    """A fold for each row: whole clusters by lot, or the rows of each class by lot."""
    if clusters is not None:
        names, of_row = np.unique(clusters, return_inverse=True)
        return (random.permutation(len(names)) % FOLDS)[of_row]
    folds = np.empty(len(labels), np.int64)
    for value in np.unique(labels):
        own = np.flatnonzero(labels == value)
        folds[own] = random.permutation(len(own)) % FOLDS
    return folds


def cross_fit(kinds: Iterable[str], rows: Validation, folds: Folds, fit: FitFold) -> CrossFitted:
    """Train every kind of model on each two of the folds, and add them up."""
    members: dict[str, Best] = {}
    unseen: dict[str, Tensor] = {}
    for kind in kinds:
        parts = []
        for fold, (own, held) in enumerate(_pairs(rows, folds)):
            best = members[f"{kind}_{fold}"] = fit(kind, own, held, fold)
            parts.append(score(best.model, held.x).double())
        order = torch.from_numpy(np.argsort(folds, kind="stable")).to(parts[0].device)
        scores = torch.cat(parts)
        unseen[kind] = torch.empty_like(scores).index_copy_(0, order, scores)
    factors, shift = weigh(unseen, rows.y, rows.weights)
    kept = {f"{kind}_{fold}": w / FOLDS for kind, w in factors.items() for fold in range(FOLDS)}
    model = Stacked({name: members[name].model for name in kept}, list(kept.values()), shift)
    model = model.to(rows.x.device).eval()
    total = sum(weight * unseen[kind] for kind, weight in factors.items())
    scores = total + (model.shift if len(shift) > 1 else model.shift[0])
    best = best_of_sum(model, members, kept, rows.value(scores)[0])
    return CrossFitted(best, members, scores)


def _pairs(rows: Validation, folds: Folds) -> Iterator[tuple[Validation, Validation]]:
    """The rows to train on and those to judge by, fold by fold, each in its order."""
    for fold in range(FOLDS):
        held = torch.from_numpy(folds == fold).to(rows.y.device)
        yield (
            rows.part(torch.nonzero(~held).reshape(-1)),
            rows.part(torch.nonzero(held).reshape(-1)),
        )
