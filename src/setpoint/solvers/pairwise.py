"""The pairwise loss of partial areas (Narasimhan, Agarwal, 2013; the baseline of ICO, 5.2).

Every positive should score above every negative of a range of false positive rates: for a range
from 0 to beta, above the beta highest negatives.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.distributed import Reduction
from setpoint.losses import Ranked, ValueAndGradient, batch_loss, from_zero
from setpoint.problems import PER_GROUP, GoalLike, Problem
from setpoint.rates import Bound, Range, fnr, fpr, tpr
from setpoint.solvers.base import LossCriterion, check_problem

Surrogate = Literal["squared_hinge", "sigmoid"]
_LARGEST_SQUARE = torch.finfo(torch.float32).max
"""Squares of huge scores end where single precision does: the loss stays a number."""


class Pairwise(LossCriterion):
    """A criterion over pairs: ``criterion(model(x), y).backward()``, in ``n log n``.

    The mean of a surrogate of ``f_i < f_j`` over the pairs of a positive ``i`` and one of the
    negatives ``j`` ranked within the range.

    Args:
        problem: ``tpr`` over a range of ``fpr``. The miss or detection rate *at* an ``fpr`` is
            trained by the range up to it: the nearest area there is, not the same goal.
        surrogate: ``"squared_hinge"`` or ``"sigmoid"``.
        scale: The margin of the squared hinge, the temperature of the sigmoid, in units of the
            scores.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Examples:
        >>> from setpoint import Pairwise, roc_auc
        >>> criterion = Pairwise(roc_auc(fpr=(0, 0.5)))
        >>> scores = torch.tensor([2.0, 0.5, 0.0, -3.0], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1, 1, 0, 0]))
        >>> loss.backward()
        >>> loss.item(), (scores.grad + 0).tolist()
        (0.125, [0.0, -0.5, 0.5, 0.0])
    """

    _options = ("surrogate", "scale")

    def __init__(
        self,
        problem: GoalLike,
        *,
        surrogate: Surrogate = "squared_hinge",
        scale: float = 1.0,
        reduction: Reduction | None = None,
    ) -> None:
        problem = check_problem(problem, "Pairwise")
        super().__init__(problem, reduction)
        if surrogate not in ("squared_hinge", "sigmoid"):
            raise ValueError(f"surrogate must be 'squared_hinge' or 'sigmoid'; got {surrogate!r}.")
        self.surrogate = surrogate
        self.scale = positive(scale, "scale")
        self._range = fpr_range(problem)

    def measure(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The mean over pairs, and over outputs."""
        return batch_loss(self._by_pairs, scores, labels, weights)

    def _by_pairs(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        ranked = Ranked.of(scores, positives, negatives).within(*self._range)
        pairs = ranked.positives.sum(-1) * ranked.negatives.sum(-1)
        pairs = pairs + (pairs == 0)
        if self.surrogate == "squared_hinge":
            value, gradient = squared_hinge(ranked, self.scale)
        else:
            value, gradient = _sigmoid(ranked, self.scale)
        return (value / pairs).clamp(max=_LARGEST_SQUARE), gradient / pairs[:, None]


def fpr_range(problem: Problem) -> tuple[float, float]:
    """The range of false positive rates of a problem; raises if it has none."""
    if problem.objective == (tpr if problem.maximize else fnr) and len(problem.subject_to) == 1:
        (target,) = problem.subject_to
        if isinstance(target, Range) and target.expression == fpr:
            return target.low, target.high
        capped = not isinstance(target, Bound) or target.sense == "<="
        if not isinstance(target, Range) and target.expression == fpr and capped and target.level:
            return 0.0, target.level
    who = "Implicit trains" if problem.thresholds == PER_GROUP else "Implicit and Lagrangian train"
    raise ValueError(
        f"Pairwise cannot express `{problem}`: it ranks positives above the negatives of a range "
        f"of fpr (tpr over fpr, tpr or fnr at an fpr above 0). {who} for it; for F, precision at "
        "a recall and metrics without a constraint so does Program."
    )


def _sigmoid(ranked: Ranked, temperature: float) -> ValueAndGradient:
    """The sum of ``sigmoid((f_j - f_i) / temperature)`` over pairs, and its gradient."""
    x, p, n = ranked.scores / temperature, ranked.positives, ranked.negatives
    values, gradients = [], []
    for scores, up, down in zip(x, p, n, strict=True):
        yes, no = (_that_count(weights) for weights in (up, down))
        above, pull = sigmoid_sums(scores[yes], scores[no], down[no])
        _, push = sigmoid_sums(scores[no], scores[yes], up[yes])
        gradient = torch.zeros_like(scores)
        gradient = gradient.index_add(0, yes, -up[yes] * pull)
        gradients.append(gradient.index_add(0, no, down[no] * push) / temperature)
        values.append((up[yes] * above).sum())
    return torch.stack(values), ranked.unsorted(torch.stack(gradients))


def _that_count(weights: Tensor) -> Tensor:
    """The places of examples that count; under a compiler, whose shapes are fixed, all."""
    if torch.compiler.is_compiling():
        return torch.arange(len(weights), device=weights.device)
    return weights.nonzero()[:, 0]


def squared_hinge(ranked: Ranked, margin: float) -> tuple[Tensor, Tensor]:
    """The sum over pairs ``[c]``, and its gradient on the scores in the order of the batch."""
    p, n, x = ranked.positives, ranked.negatives, ranked.scores / margin
    first = ranked.after(ranked.scores - margin)  # from here on negatives are within the margin
    count, total, squares = (_from(n * x**k, first) for k in range(3))
    reach = 1 - x
    losses = (reach**2 * count + 2 * reach * total + squares).clamp(min=0)
    by_positive = -2 * (reach * count + total)
    # seen from the negatives: positives come in where their stretch begins
    seen, seen_at = (_arrived(p * x**k, first) for k in range(2))
    by_negative = 2 * ((1 + x) * seen - seen_at)
    gradient = (p * by_positive + n * by_negative) / margin
    return (p * losses).sum(-1), ranked.unsorted(gradient)


def _from(values: Tensor, first: Tensor) -> Tensor:
    """The sum of the values from each place to the end."""
    running = from_zero(values)
    return running[..., -1:] - running.gather(-1, first)


def _arrived(values: Tensor, first: Tensor) -> Tensor:
    """The sum, at each place, of the values whose stretch has begun."""
    steps = values.new_zeros(*values.shape[:-1], values.shape[-1] + 1)
    return steps.scatter_add_(-1, first, values).cumsum(-1)[..., :-1]


_POINTS = 14
_FAR = 40
FEW_PAIRS = 2**17
"""Up to here all pairs at once are faster."""
_CELLS_AT_ONCE = 32
"""Cells taken at once: with their neighbours some megabytes."""


def sigmoid_sums(x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """``sum_j w_j sigmoid(y_j - x_i)`` and ``sum_j w_j sigmoid'(y_j - x_i)`` for every ``x`` [n].

    Args:
        x: Where the sums are wanted, in units of the temperature, ``[n]``.
        y: Sources, ``[k]``.
        weights: What they count for, ``[k]``.
    """
    if torch.compiler.is_compiling() or len(x) * len(y) <= FEW_PAIRS:
        value = torch.sigmoid(y - x[:, None])
        return value @ weights, (value * torch.sigmoid(x[:, None] - y)) @ weights
    cells, place = torch.unique(torch.cat([x, y]).floor(), return_inverse=True)
    at_x, at_y = place[: len(x)], place[len(x) :]
    moments = x.new_zeros(len(cells), _POINTS)
    moments.index_add_(0, at_y, weights[:, None] * _basis(y - cells[at_y]))
    potentials = _between(cells, moments)
    basis = _basis(x - cells[at_x])
    value, slope = ((basis * potential[at_x]).sum(-1) for potential in potentials)
    return value, slope


def _between(cells: Tensor, moments: Tensor) -> tuple[Tensor, Tensor]:
    """What all cells sum up to at the points of each, ``[cells, points]``, and its slope."""
    nodes = _nodes(cells)
    apart = (nodes - nodes[:, None])[:, None]  # of source q above target p
    above = moments.sum(-1).flip(0).cumsum(0).flip(0)
    above = torch.cat([above, above.new_zeros(1)])
    low = torch.searchsorted(cells, cells - _FAR).tolist()
    high = torch.searchsorted(cells, cells + _FAR, right=True).tolist()
    values, slopes = [], []
    for start in range(0, len(cells), _CELLS_AT_ONCE):
        stop = min(start + _CELLS_AT_ONCE, len(cells))
        near = slice(low[start], high[stop - 1])
        distance = (cells[near] - cells[start:stop, None])[:, None, :, None] + apart
        step = torch.sigmoid(distance)
        value = torch.einsum("apbq,bq->ap", step, moments[near]) + above[near.stop]
        values.append(value)
        slopes.append(torch.einsum("apbq,bq->ap", step * torch.sigmoid(-distance), moments[near]))
    return torch.cat(values), torch.cat(slopes)


def _nodes(like: Tensor) -> Tensor:
    """Chebyshev points of a cell, measured from its lower end."""
    angles = (torch.arange(_POINTS, dtype=like.dtype, device=like.device) + 0.5) * math.pi / _POINTS
    return 0.5 + 0.5 * torch.cos(angles)


def _basis(inside: Tensor) -> Tensor:
    """The polynomials that are one at one point of a cell and zero at the others, ``[n, points]``.

    By the discrete orthogonality of Chebyshev polynomials: ``(1 + 2 sum T_r(node) T_r(t)) / P``.
    """
    degrees = torch.arange(1, _POINTS, dtype=inside.dtype, device=inside.device)
    angle = torch.acos((2 * inside - 1).clamp(-1, 1))
    at_nodes = torch.acos(2 * _nodes(inside) - 1)
    here, there = (torch.cos(a[:, None] * degrees) for a in (angle, at_nodes))
    return (1 + 2 * here @ there.T) / _POINTS
