"""qpth: an LP as a QP with a little curvature, dense; the published layer of OptNet."""

from __future__ import annotations

from collections.abc import Callable

import torch
from qpth.qp import QPFunction
from torch import Tensor

from benchmarks.programs.instances import dense, normalised, with_scores

CURVATURE = 1e-4  # qpth factorises the quadratic term, which a linear program has not


def build(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """A loss of scores with positives first; the constant parts are made once."""
    p, n = int(labels.sum()), int((1 - labels).sum())
    c, A, b, E, h = dense(metric, p, n, torch.float64)
    Q = CURVATURE * torch.eye(len(c), dtype=torch.float64)
    solve = QPFunction(verbose=-1, maxIter=50)

    def loss(scores: Tensor) -> Tensor:
        rows, right = with_scores(metric, A, b, scores, p)
        z = solve(Q, c, rows, right, E, h)[0]
        return normalised(metric, c @ z, p, n)

    return loss


def batch(c: Tensor, A: Tensor, b: Tensor) -> Tensor:
    """Solutions of a batch of dense programs ``min c'z, A z <= b``."""
    Q = CURVATURE * torch.eye(c.shape[-1], dtype=c.dtype)
    none = torch.empty(0, dtype=c.dtype)
    return QPFunction(verbose=-1, maxIter=50)(Q, c, A, b, none, none)
