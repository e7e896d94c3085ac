"""Losses for the area under the ROC curve, whole or over a range of false positive rates.

Meng et al., *Differentiable optimization of generalized nondecomposable functions using linear
programs* (2021), equation 1. The program has one variable and one constraint per pair of a positive
and a negative, and no two of them share anything: its value is a sum over pairs.

The loss of a pair depends on how far the positive is above the negative, ``d = f_i - f_j``:
``max(0, 1 - d / margin)`` for the hinge, the same but at most 1 for the ramp. In the order of the
scores the negatives within ``margin`` of a positive are neighbours, so cumulative sums give their
number and the sum of their scores: the cost is that of a sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import share
from setpoint.losses.base import MetricLoss, Ranked, ValueAndGradient, from_zero
from setpoint.losses.writing import LinearProgram, ProgramBuilder, TwoClasses

PairSurrogate = Literal["hinge", "ramp"]


def auc_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: PairSurrogate = "hinge",
) -> Tensor:
    """An upper bound on one minus the area under the ROC curve, in ``n log n``.

    The mean over pairs of ``max(0, 1 - (f_i - f_j) / margin)``.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        margin: How far, in units of the scores, a positive has to be above a negative before the
            pair costs nothing.
        surrogate: ``"hinge"`` is convex and has a gradient on every pair that is misranked or
            close. ``"ramp"``, as published, costs at most 1 per pair and has a gradient only on
            pairs ranked right by less than the margin: with a small margin that is almost none.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.5, 0.0], requires_grad=True)
        >>> loss = auc_loss(scores, torch.tensor([1, 1, 0]))
        >>> loss.backward()
        >>> loss.item(), scores.grad.tolist()
        (0.25, [0.0, -0.5, 0.5])
    """
    return RocArea(margin, surrogate).loss(scores, labels, weights)


def partial_auc_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    fpr: tuple[float, float],
    weights: Tensor | None = None,
    margin: float = 1.0,
) -> Tensor:
    """An upper bound on one minus the mean true positive rate over a range of false ones.

    The mean hinge over the pairs of a positive with one of the negatives ranked within the range:
    for ``fpr=(0, 0.05)`` the 5 % with the highest scores. For a range from 0 it is convex.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        fpr: The range of false positive rates, ``(low, high)``. Fewer than one negative is fine:
            a negative that an end of the range cuts through counts in part.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        margin: As in :func:`auc_loss`.

    Examples:
        >>> scores, labels = torch.tensor([2.0, 1.5, 0.0, -1.0]), torch.tensor([1, 0, 1, 0])
        >>> round(partial_auc_loss(scores, labels, fpr=(0, 0.5)).item(), 3)
        1.5
    """
    return PartialRocArea(margin, fpr).loss(scores, labels, weights)


@dataclass(frozen=True)
class RocArea(MetricLoss):
    """:func:`auc_loss` and its program (equation 1)."""

    surrogate: PairSurrogate = "hinge"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.surrogate not in ("hinge", "ramp"):
            raise ValueError(f"surrogate must be 'hinge' or 'ramp'; got {self.surrogate!r}.")

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        """The mean over all pairs."""
        return pair_loss(Ranked.of(scores, positives, negatives), self.margin, self.surrogate)

    def write(self, classes: TwoClasses) -> LinearProgram:
        """One variable ``z >= 1 - d / margin`` per pair, at its share in the mean."""
        return self.write_pairs(classes.differences, classes.pair_weights)

    def write_pairs(self, differences: Tensor, weights: Tensor) -> LinearProgram:
        """``min sum w z``; the ramp gives back what a misranked pair costs above 1.

        What it gives back is ``min over 0 <= r <= 1 of r d / margin``: another variable per pair,
        with the scores in its cost.
        """
        u = differences / self.margin
        ones, program = torch.ones_like(u), ProgramBuilder()
        program.at_most(u - 1, (program.variables(weights), -ones))
        if self.surrogate == "ramp":
            program.at_most(ones, (program.variables(weights * u), ones))
        return program.build()


@dataclass(frozen=True)
class PartialRocArea(MetricLoss):
    """:func:`partial_auc_loss` and its program."""

    fpr: tuple[float, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.fpr, (tuple, list)) or len(self.fpr) != 2:
            raise TypeError(f"fpr must be a range such as (0, 0.05); got {self.fpr!r}.")
        low, high = (share(end, "An end of the fpr range") for end in self.fpr)
        if low >= high:
            raise ValueError(f"The fpr range goes from low to high; got ({low:g}, {high:g}).")

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        """The mean over pairs with the negatives of the range."""
        ranked = Ranked.of(scores, positives, negatives)
        return pair_loss(ranked.within(*self.fpr), self.margin)

    def write(self, classes: TwoClasses) -> LinearProgram:
        """The sum of the largest pairs of a negative: ``min k t + sum w s``, ``s_j >= v_j - t``.

        For a range that does not begin at 0 the sum of the largest up to its beginning is taken off
        again: ``min -sum o v`` over ``0 <= o <= w, sum o = k``, with the values in the cost.
        """
        (low, high), weights = self.fpr, classes.low_weights
        u, total = classes.differences / self.margin, weights.sum()
        size, one = (high - low) * total, u.new_ones(())
        program = ProgramBuilder()
        z = program.variables(torch.zeros_like(u))
        slack = program.variables(weights / size)
        level = program.variables((high * total / size).reshape(1))
        program.at_most(u - 1, (z, -one))
        shares = classes.high_weights / classes.high_weights.sum()
        by_negative = z.reshape(len(shares), len(weights))
        pairs = zip(by_negative, shares, strict=True)
        program.at_most(torch.zeros_like(weights), (slack, -one), (level, -one), *pairs)
        if low:
            values = shares @ (1 - u).clamp(min=0).reshape(len(shares), -1)
            off = program.variables(-values / size)
            program.at_most(weights, (off, one))
            program.sum_equal(low * total, (off, one))
        return program.build()


def pair_loss(
    ranked: Ranked, margin: float, surrogate: PairSurrogate = "hinge"
) -> ValueAndGradient:
    """The mean loss over pairs, ``[c]``, and its gradient on the scores, ``[c, n]``."""
    p, n = ranked.positives, ranked.negatives
    first = ranked.after(ranked.scores - margin)  # negatives from here on are within the margin
    last = ranked.block_starts() if surrogate == "ramp" else None  # from here on not below
    losses, sloped = _by_positive(ranked, first, last, margin)
    value = losses.mul_(p).sum(-1)
    gradient = _by_negative(p, first, last).mul_(n)
    gradient -= sloped.mul_(p)
    pairs = p.sum(-1) * n.sum(-1)
    pairs = pairs + (pairs == 0)
    return value / pairs, ranked.unsorted(gradient.div_(margin * pairs[..., None]))


def _by_positive(
    ranked: Ranked, first: Tensor, last: Tensor | None, margin: float
) -> tuple[Tensor, Tensor]:
    """For a positive at each score: its loss, and the weight of negatives with a gradient."""
    count, total = from_zero(ranked.negatives), from_zero(ranked.negatives * ranked.scores)
    if last is None:
        sloped, losses = count[..., -1:].expand_as(first), total[..., -1:].expand_as(first)
    else:
        sloped, losses = count.gather(-1, last), total.gather(-1, last)
    sloped, losses = sloped - count.gather(-1, first), losses - total.gather(-1, first)
    losses.addcmul_(margin - ranked.scores, sloped).div_(margin)
    if last is not None:  # negatives that are not below cost 1 each
        losses.add_(count[..., -1:]).sub_(count.gather(-1, last))
    return losses, sloped


def _by_negative(p: Tensor, first: Tensor, last: Tensor | None) -> Tensor:
    """For a negative at each rank: the weight of positives it has a gradient with.

    Counted by the intervals of ranks that the positives use, so that both sides of a pair get the
    same gradient, ties included: a positive is added where its interval begins and removed at its
    end.
    """
    steps = p.new_zeros(*p.shape[:-1], p.shape[-1] + 1).scatter_add_(-1, first, p)
    if last is not None:
        steps.scatter_add_(-1, last, -p)
    return steps.cumsum(-1)[..., :-1]
