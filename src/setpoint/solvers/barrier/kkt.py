"""How far a point is from lexicographic optimality: the residual of the paper's eq. (16).

At the optimum the gradient of the secondary loss lies in the range of the main loss's Hessian:
``grad f + H w = 0`` for some ``w``. What is left over after the best ``w`` is the part of
``grad f`` that could still be followed without hurting the main loss.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from setpoint._checks import whole
from setpoint.solvers.barrier.constraints import scalar
from setpoint.solvers.barrier.gradients import trainable

Vectors = list[Tensor]


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

    Example:
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


def _gradient(loss: Tensor, weights: Vectors, *, keep: bool = False) -> Vectors:
    parts = torch.autograd.grad(
        loss, weights, create_graph=keep, retain_graph=True, allow_unused=True
    )
    return [
        torch.zeros_like(w) if part is None else part
        for part, w in zip(parts, weights, strict=True)
    ]


def _product(steep: Vectors, weights: Vectors, vectors: Vectors) -> Vectors:
    """The Hessian times a vector."""
    inner = torch.stack([(s * v.detach()).sum() for s, v in zip(steep, vectors, strict=True)]).sum()
    if not inner.requires_grad:  # a linear loss: its Hessian is zero
        return [torch.zeros_like(w) for w in weights]
    return [part.detach() for part in _gradient(inner, weights)]


def _length(vectors: Vectors) -> float:
    return float(torch.stack([v.detach().double().square().sum() for v in vectors]).sum().sqrt())
