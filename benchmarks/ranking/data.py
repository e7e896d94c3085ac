"""MQ2007-agg: 1,692 queries, 21 rankings to aggregate, five official folds."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.folder import path

PARTS = 5


class Documents(NamedTuple):
    """Documents of whole queries, query after query."""

    x: Tensor  # [n, 42] float32
    grades: Tensor  # [n] 0, 1 or 2
    queries: Tensor  # [n]

    @property
    def labels(self) -> Tensor:
        """Relevant or not."""
        return (self.grades > 0).long()


class Fold(NamedTuple):
    """Three parts to learn from, one to choose by, one to report on."""

    train: Documents
    validation: Documents
    test: Documents


@lru_cache(maxsize=1)
def _all() -> tuple[np.ndarray, ...]:
    with np.load(path("mq2007_agg/mq2007_agg.npz")) as z:
        ranks = z["X"].astype(np.float32)
        listed = ranks >= 0
        depth = np.log1p(np.where(listed, ranks, 0.0))
        far = depth.max()
        first = np.where(listed, 1 / (1 + np.where(listed, ranks, 0.0)), 0.0)
        high = np.where(listed, 1 - depth / far, 0.0)
        return np.hstack([first, high]).astype(np.float32), z["y"], z["qid"], z["part"]


def fold(number: int) -> Fold:
    """Official fold 1 to 5, columns standardised on the training part."""
    x, grades, queries, part = _all()
    chosen = [(number - 1 + i) % PARTS + 1 for i in range(PARTS)]
    pieces = [np.isin(part, chosen[:3]), part == chosen[3], part == chosen[4]]
    centre, deviation = x[pieces[0]].mean(0), x[pieces[0]].std(0) + 1e-6
    return Fold(*(_documents((x - centre) / deviation, grades, queries, p) for p in pieces))


def _documents(
    x: np.ndarray, grades: np.ndarray, queries: np.ndarray, rows: np.ndarray
) -> Documents:
    order = np.flatnonzero(rows)
    order = order[np.argsort(queries[order], kind="stable")]
    return Documents(
        torch.as_tensor(x[order]),
        torch.as_tensor(grades[order].astype(np.int64)),
        torch.as_tensor(queries[order].astype(np.int64)),
    )
