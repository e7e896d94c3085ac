"""How far a point is from optimal: the KKT score (eq. 9) and the residual of eq. (16).

At a lexicographic optimum the gradient of the secondary loss lies in the range of the main loss's
Hessian: ``grad f + H w = 0`` for some ``w``. What is left over after the best ``w`` is the part of
``grad f`` that could still be followed without hurting the main loss.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import whole
from setpoint.solvers.barrier.constraints import scalar
from setpoint.solvers.barrier.gradients import trainable
from setpoint.solvers.barrier.quadratic_program import Mask, Vector


def kkt_score(gram: Vector, weights: Vector, pushes: Vector, free: Mask) -> float:
    """Eq. (9), summed over bounds: zero at a KKT point and only there."""
    broken = np.where(free, np.abs(pushes), np.maximum(pushes, 0.0))
    slack = np.where(free, 0.0, np.maximum(-pushes, 0.0))
    return float(weights @ gram @ weights + broken.sum() + weights[:-1] @ slack)


def relative_length(gram: Vector, weights: Vector) -> float:
    """``|v| / |grad f|``, where the last gradient is that of f."""
    own = float(gram[-1, -1])
    return float(np.sqrt(max(float(weights @ gram @ weights), 0.0) / own)) if own > 0 else 0.0


def lexicographic_residual(
    secondary: Tensor, main: Tensor, params: Iterable[Tensor], *, iterations: int = 50
) -> float:
    """``min_w |grad f + H w| / |grad f|``, where ``H`` is the Hessian of the main loss.

    Conjugate gradients on the normal equations: two products with the Hessian in each iteration,
    never the matrix. It is a diagnostic for now and then; :meth:`setpoint.Barrier.report` has a
    first-order estimate at every step.

    Args:
        secondary: The loss of lower priority, a scalar with a graph.
        main: The more important one, twice differentiable.
        params: The parameters, such as ``model.parameters()``.
        iterations: The most that are made; directions of small curvature need many.

    Examples:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> round(lexicographic_residual(x.square().sum(), x[0].square(), [x]), 4)  # 4 / sqrt(20)
        0.8944
    """
    weights = trainable(params)
    pull = _gradient(scalar(secondary, "secondary"), weights)
    steep = _gradient(scalar(main, "main"), weights, keep=True)
    start = _length(pull)
    if start == 0:
        return 0.0
    rest = [-part for part in pull]  # of H w = -grad f
    normal = _product(steep, weights, rest)
    towards, size = normal, _length(normal) ** 2
    for _ in range(whole(iterations, "iterations", least=1)):
        if size <= 1e-24 * start**2:
            break
        image = _product(steep, weights, towards)
        curvature = _length(image) ** 2
        if curvature == 0:
            break
        rest = [r - size / curvature * i for r, i in zip(rest, image, strict=True)]
        normal = _product(steep, weights, rest)
        before, size = size, _length(normal) ** 2
        towards = [n + size / before * t for n, t in zip(normal, towards, strict=True)]
    return _length(rest) / start


def _gradient(loss: Tensor, weights: list[Tensor], *, keep: bool = False) -> list[Tensor]:
    parts = torch.autograd.grad(
        loss, weights, create_graph=keep, retain_graph=True, allow_unused=True
    )
    return [
        torch.zeros_like(w) if part is None else part
        for part, w in zip(parts, weights, strict=True)
    ]


def _product(steep: list[Tensor], weights: list[Tensor], vectors: list[Tensor]) -> list[Tensor]:
    """The Hessian times a vector."""
    inner = torch.stack([(s * v.detach()).sum() for s, v in zip(steep, vectors, strict=True)]).sum()
    if not inner.requires_grad:  # a linear loss: its Hessian is zero
        return [torch.zeros_like(w) for w in weights]
    return [part.detach() for part in _gradient(inner, weights)]


def _length(vectors: list[Tensor]) -> float:
    return float(torch.stack([v.detach().double().square().sum() for v in vectors]).sum().sqrt())
