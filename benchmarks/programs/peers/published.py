"""The published recipe (Meng et al. 2021), written again from the paper and what its code does.

Twenty full Newton steps on ``|(A y - b)_+|^2 / 2 + weight c'y`` from a ridge start, no line search;
rows with a positive residual are taken as active, and ``z`` is the ridge solution on those rows.
Gradients flow through that last solve only. Dense, in float32, equalities as two inequalities.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.programs.instances import dense, normalised, with_scores

STEPS, WEIGHT, DAMPING, RIDGE = 20, 1e-3, 1e-4, 1e-2


def solve(c: Tensor, A: Tensor, b: Tensor) -> Tensor:
    """The recipe's answer to ``min c'z, A z <= b``; batches in front are allowed."""
    with torch.no_grad():
        y = _newton(c, A, b)
        active = ((A @ y[..., None])[..., 0] > b).to(A.dtype)
    rows, right = A * active[..., None], b * active
    return _ridge(rows, right, RIDGE)


def _newton(c: Tensor, A: Tensor, b: Tensor) -> Tensor:
    columns = A.shape[-1]
    y = _ridge(A[..., :columns, :], b[..., :columns], WEIGHT)
    damping = DAMPING * torch.eye(columns, dtype=A.dtype)
    for _ in range(STEPS):
        residual = ((A @ y[..., None])[..., 0] - b).clamp(min=0)
        gradient = (A.mT @ residual[..., None])[..., 0] + WEIGHT * c
        rows = A * (residual > 0)[..., None]
        y = y - torch.linalg.solve(rows.mT @ rows + damping, gradient)
    return y


def _ridge(rows: Tensor, right: Tensor, ridge: float) -> Tensor:
    normal = rows.mT @ rows + ridge * torch.eye(rows.shape[-1], dtype=rows.dtype)
    return torch.linalg.solve(normal, (rows.mT @ right[..., None])[..., 0])


def build(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """A loss of scores with positives first, in float32 as published."""
    p, n = int(labels.sum()), int((1 - labels).sum())
    c, A, b, E, h = dense(metric, p, n, torch.float32)

    def loss(scores: Tensor) -> Tensor:
        rows, right = with_scores(metric, A, b, scores.float(), p)
        z = solve(c, torch.cat([rows, E, -E]), torch.cat([right, h, -h]))
        return normalised(metric, c @ z, p, n).to(scores.dtype)

    return loss
