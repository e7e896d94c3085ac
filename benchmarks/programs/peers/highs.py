"""HiGHS through scipy: its duals are the gradient of the optimum; or with a blackbox gradient.

The blackbox (Pogančić et al. 2020, *Differentiation of blackbox combinatorial solvers*)
differentiates the solution by the costs, at the price of a second solve in the backward pass. The
paper's Fig. 3b times it with the costs of the AUC program as the parameter, and so do we; scores
get no gradient from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor
from torch.autograd.function import FunctionCtx

from benchmarks.programs.instances import Matrices, matrices, normalised

STRENGTH = 10.0  # how far the blackbox moves the costs


def solved(program: Matrices, c: np.ndarray | None = None) -> Any:
    """What scipy found; an error if it is not optimal."""
    equal = (program.E, program.h) if len(program.h) else (None, None)
    costs = program.c if c is None else c
    found = linprog(costs, program.A, program.b, *equal, bounds=(None, None), method="highs")
    if found.status != 0:
        raise RuntimeError(f"HiGHS: {found.message}")
    return found


class Optimum(torch.autograd.Function):
    """The optimum as a function of scores, differentiated by the duals."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, metric: str, positives: int) -> Tensor:
        """Solve, and keep what the duals say about every score."""
        found = solved(matrices(metric, scores.detach().numpy(), positives))
        p, total = positives, len(scores)
        pull = found.ineqlin.marginals
        if metric == "auc":
            pairs = pull[: p * (total - p)].reshape(p, -1)
            by_score = np.concatenate([pairs.sum(1), -pairs.sum(0)])
        else:
            by_score = found.x[-1] * np.concatenate([pull[p : 2 * p], -pull[2 * p : p + total]])
        ctx.by_score = torch.as_tensor(by_score)
        return scores.new_tensor(found.fun)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None, None]:
        """One product."""
        return gradient[0] * ctx.by_score, None, None


class Blackbox(torch.autograd.Function):
    """The solution as a function of costs; backward solves again with moved costs."""

    @staticmethod
    def forward(ctx: Any, c: Tensor, program: Matrices) -> Tensor:
        """Solve."""
        z = solved(program, c.detach().numpy()).x
        ctx.c, ctx.program, ctx.z = c.detach().numpy(), program, z
        return torch.as_tensor(z)

    @staticmethod
    def backward(ctx: FunctionCtx | Any, *gradient: Tensor) -> tuple[Tensor, None]:
        """Solve again."""
        moved = solved(ctx.program, ctx.c + STRENGTH * gradient[0].numpy()).x
        return torch.as_tensor((moved - ctx.z) / STRENGTH), None


def build(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """A loss of scores with positives first, differentiated by duals."""
    p, n = int(labels.sum()), int((1 - labels).sum())
    return lambda scores: normalised(metric, Optimum.apply(scores, metric, p), p, n)


def build_blackbox(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """The program of the scores, with its costs as the parameter that gets a gradient."""
    p, n = int(labels.sum()), int((1 - labels).sum())

    def loss(scores: Tensor) -> Tensor:
        program = matrices(metric, scores.detach().numpy(), p)
        c = torch.as_tensor(program.c).requires_grad_()
        return normalised(metric, torch.as_tensor(program.c) @ Blackbox.apply(c, program), p, n)

    return loss
