"""Scores to be judged, and the two programs of the speed tables as scipy and qpth want them.

Both are written on scores ``f`` with positives first:

    AUC      min sum z          z_ij >= 1 - (f_i - f_j),  z >= 0                one z for each pair
    F score  max 2 sum u        u_i <= t, u_i <= f_i t, w_j >= (1 + f_j) t,  w >= 0,  t >= 0,
                                P t + sum u + sum w = 1              after Charnes and Cooper
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

METRICS = ("auc", "f1")


@dataclass(frozen=True)
class Matrices:
    """``min c'z`` with ``A z <= b`` and ``E z = h``; z is free unless a row of A says more."""

    c: np.ndarray
    A: sp.csr_array
    b: np.ndarray
    E: sp.csr_array
    h: np.ndarray


def draw(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Half positives, first; scores in float64 that a fair classifier might give."""
    random = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) < n // 2).long()
    scores = torch.randn(n, generator=random, dtype=torch.float64) + 1.6 * labels - 0.8
    return scores, labels


def matrices(metric: str, scores: np.ndarray, positives: int) -> Matrices:
    """The program of a metric."""
    upper, lower = scores[:positives], scores[positives:]
    return (auc_matrices if metric == "auc" else f1_matrices)(upper, lower)


def auc_matrices(upper: np.ndarray, lower: np.ndarray) -> Matrices:
    """One variable and two rows for each pair."""
    pairs = len(upper) * len(lower)
    gaps = (upper[:, None] - lower[None, :]).ravel()
    minus = -sp.eye_array(pairs, format="csr")
    b = np.concatenate([gaps - 1.0, np.zeros(pairs)])
    A = sp.vstack([minus, minus], format="csr")
    return Matrices(np.ones(pairs), A, b, sp.csr_array((0, pairs)), np.zeros(0))


def f1_matrices(upper: np.ndarray, lower: np.ndarray) -> Matrices:
    """Variables u, w, t; the scores stand in the column of t."""
    p, n = len(upper), len(lower)
    one_u, one_w = sp.eye_array(p), sp.eye_array(n)
    no_uw, no_wu = sp.csr_array((p, n)), sp.csr_array((n, p))
    rows = [
        [one_u, no_uw, -np.ones((p, 1))],
        [one_u, no_uw, -upper[:, None]],
        [no_wu, -one_w, (1 + lower)[:, None]],
        [no_wu, -one_w, None],
        [sp.csr_array((1, p)), sp.csr_array((1, n)), -np.ones((1, 1))],
    ]
    A = sp.block_array(rows, format="csr")
    E = sp.csr_array(np.concatenate([np.ones(p + n), [p]])[None, :])
    c = np.concatenate([-2.0 * np.ones(p), np.zeros(n + 1)])
    return Matrices(c, A, np.zeros(A.shape[0]), E, np.ones(1))


def dense(metric: str, positives: int, negatives: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """c, A, b, E, h at zero scores, for tools that know no sparse matrices."""
    fixed = matrices(metric, np.zeros(positives + negatives), positives)
    parts = (fixed.c, fixed.A.toarray(), fixed.b, fixed.E.toarray(), fixed.h)
    return tuple(torch.as_tensor(part, dtype=dtype) for part in parts)


def with_scores(metric: str, A: Tensor, b: Tensor, scores: Tensor, p: int) -> tuple[Tensor, Tensor]:
    """The program at zero scores moved to these: AUC in b, the F score in the last column of A."""
    if metric == "auc":
        gaps = (scores[:p, None] - scores[None, p:]).ravel()
        return A, b + torch.cat([gaps, torch.zeros_like(gaps)])
    moved = torch.zeros_like(A[:, -1])
    moved = torch.cat([moved[:p], -scores[:p], scores[p:], moved[p + len(scores) :]])
    return torch.cat([A[:, :-1], (A[:, -1] + moved)[:, None]], dim=1), b


def normalised(
    metric: str, value: Tensor | float, positives: int, negatives: int
) -> Tensor | float:
    """The optimum as a loss: the mean hinge of a pair, or one minus the bound on F1."""
    return value / (positives * negatives) if metric == "auc" else 1 + value


def random_batch(
    batch: int, rows: int = 60, columns: int = 20, seed: int = 0
) -> tuple[Tensor, ...]:
    """Feasible and bounded programs of one shape, dense.

    ``c = -A' v`` with ``v >= 0`` makes the dual feasible, the slack at a point the primal.
    """
    random = torch.Generator().manual_seed(seed)
    A = torch.randn(batch, rows, columns, generator=random, dtype=torch.float64)
    z = torch.randn(batch, columns, generator=random, dtype=torch.float64)
    slack = torch.rand(batch, rows, generator=random, dtype=torch.float64)
    v = torch.rand(batch, rows, generator=random, dtype=torch.float64)
    return -(A.mT @ v[..., None])[..., 0], A, (A @ z[..., None])[..., 0] + slack
