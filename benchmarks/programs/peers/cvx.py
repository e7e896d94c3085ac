"""cvxpylayers: the scores are parameters of the program, and it differentiates the solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
from cvxpylayers.torch import CvxpyLayer
from torch import Tensor

CLARABEL = {"solve_method": "Clarabel"}
TIGHT = {**CLARABEL, "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
CHOSEN: dict[str, Any] = {}  # the library's own choice, SCS


def build(metric: str, labels: Tensor, solver: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """A loss of scores with positives first."""
    positives = int(labels.sum())
    negatives = len(labels) - positives
    return (auc if metric == "auc" else f1)(positives, negatives, solver)


def auc(positives: int, negatives: int, solver: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """Differences of scores enter the right side only: the lightest form for cvxpylayers."""
    gaps, z = cp.Parameter(positives * negatives), cp.Variable(positives * negatives)
    problem = cp.Problem(cp.Minimize(cp.sum(z)), [z >= 1 - gaps, z >= 0])
    layer = CvxpyLayer(problem, parameters=[gaps], variables=[z])

    def loss(scores: Tensor) -> Tensor:
        upper, lower = scores[:positives], scores[positives:]
        (found,) = layer((upper[:, None] - lower[None, :]).ravel(), solver_args=solver)
        return found.mean()

    return loss


def f1(positives: int, negatives: int, solver: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """The scores multiply one variable: sparse in cvxpylayers' own map from parameters to A."""
    upper, lower = cp.Parameter(positives), cp.Parameter(negatives)
    u, w, t = cp.Variable(positives), cp.Variable(negatives), cp.Variable()
    rows = [u <= t, u <= upper * t, w >= lower * t + t, w >= 0, t >= 0]
    whole = positives * t + cp.sum(u) + cp.sum(w) == 1
    problem = cp.Problem(cp.Maximize(2 * cp.sum(u)), [*rows, whole])
    layer = CvxpyLayer(problem, parameters=[upper, lower], variables=[u])

    def loss(scores: Tensor) -> Tensor:
        (found,) = layer(scores[:positives], scores[positives:], solver_args=solver)
        return 1 - 2 * found.sum()

    return loss


def batch(rows: int, columns: int, solver: dict[str, Any]) -> Callable[..., Tensor]:
    """Solutions of a batch of dense programs ``min c'z, A z <= b``."""
    c, A, b = cp.Parameter(columns), cp.Parameter((rows, columns)), cp.Parameter(rows)
    z = cp.Variable(columns)
    problem = cp.Problem(cp.Minimize(c @ z), [A @ z <= b])
    layer = CvxpyLayer(problem, parameters=[c, A, b], variables=[z])
    return lambda *given: layer(*given, solver_args=solver)[0]


class F1Loss:
    """The F-score program of batches with any number of positives, for training."""

    def __init__(self, solver: dict[str, Any]) -> None:
        """A layer is built for each number of positives, when it first occurs."""
        self.solver = solver
        self.layers: dict[int, Callable[[Tensor], Tensor]] = {}

    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Zero for a batch of one class."""
        p = int(labels.sum())
        if p in (0, len(labels)):
            return 0 * scores.sum()
        if p not in self.layers:
            self.layers[p] = f1(p, len(labels) - p, self.solver)
        return self.layers[p](scores[labels.argsort(descending=True)].double())
