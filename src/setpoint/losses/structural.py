"""The structural hinge for any metric made of counts (Joachims, 2005), by a table of its errors.

The loss is the worst case over all decisions: how much worse than perfect the metric would be, less
the weighted scores of the examples that are decided wrongly. Whatever the number of missed
positives, the worst ones to miss are the lowest, and the worst false alarms are the highest
negatives: instead of ``2^n`` decisions there are ``(P + 1)(N + 1)`` pairs of counts to compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import number
from setpoint.losses.base import MetricLoss, ValueAndGradient
from setpoint.losses.writing import LinearProgram, ProgramBuilder, TwoClasses
from setpoint.rates import Counts, Expression, Tables

PAIRS_TOGETHER = 2**20  # pairs of counts that are compared in one piece
MOST_PAIRS = 2**31  # pairs of counts that are accepted: some minutes


def structural_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    metric: Expression,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: float = 0.0,
) -> Tensor:
    """An upper bound on how far the metric of ``score > threshold`` is from its perfect value.

    Convex in the scores. Scores are weighted by what one error costs near perfection, so that a
    single error stops costing where its score is on the right side by about the margin. For
    ``metric=error`` the loss is the mean hinge.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        metric: Any expression of rates without slices, such as ``f_score(1)`` or ``jaccard``.
        weights: Optional, one per example; weight 0 is absent. An example is decided as a whole, so
            weight 2 is not quite two copies, which could be decided apart.
        margin: How far from the threshold, in units of the scores, a decision has to be to be safe.
        threshold: Where decisions are made.

    Examples:
        >>> import torch
        >>> from setpoint import f_score
        >>> scores = torch.tensor([2.0, 0.5, -0.5], requires_grad=True)
        >>> loss = structural_loss(scores, torch.tensor([1, 1, 0]), metric=f_score(1))
        >>> loss.backward()          # worst: miss both, 1 - (2 + 0.5) / 4
        >>> loss.item(), scores.grad.tolist()
        (0.375, [-0.25, -0.25, 0.0])
    """
    return StructuralHinge(margin, metric, threshold).loss(scores, labels, weights)


@dataclass(frozen=True)
class StructuralHinge(MetricLoss):
    """:func:`structural_loss` and its program."""

    metric: Expression
    threshold: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.threshold, "threshold")
        if not isinstance(self.metric, Expression):
            shown = repr(self.metric)
            raise TypeError(f"metric must be made of rates, such as f_score(1); got {shown}.")
        if any(rate.where for rate in self.metric.rates()):
            raise ValueError(f"The structural hinge takes rates without slices; got {self.metric}.")

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        """The worst decisions of every output."""
        u = (scores - self.threshold) / self.margin
        losses, gradients = worst_cases(self.metric, u, positives, negatives)
        return losses, gradients / self.margin

    def write(self, classes: TwoClasses) -> LinearProgram:
        """One variable, with one row per pair of counts: it is at least their loss."""
        u, v = ((x - self.threshold) / self.margin for x in (classes.high, classes.low))
        low = ErrorQueue.of(u, classes.high_weights, descending=False)
        top = ErrorQueue.of(v, classes.low_weights, descending=True)
        losses = ErrorTable.of(self.metric, low, top).loss().reshape(-1)
        program = ProgramBuilder()
        program.at_most(-losses, (program.variables(losses.new_ones(1)), -losses.new_ones(())))
        return program.build()


def worst_cases(
    metric: Expression, u: Tensor, positives: Tensor, negatives: Tensor
) -> ValueAndGradient:
    """The worst decisions of every output: losses ``[c]``, and gradients by ``u`` ``[c, n]``."""
    rows = zip(u, positives, negatives, strict=True)
    losses, gradients = zip(*(_worst_case(metric, *row) for row in rows), strict=True)
    return torch.stack(losses), torch.stack(gradients)


def _worst_case(
    metric: Expression, u: Tensor, positives: Tensor, negatives: Tensor
) -> ValueAndGradient:
    """The worst decisions of one output: their loss, and its gradient by ``u``."""
    low = ErrorQueue.of(u, positives, descending=False)
    top = ErrorQueue.of(u, negatives, descending=True)
    if not (len(low.order) and len(top.order)):  # a class is missing: the result is not used
        return u.new_zeros(()), torch.zeros_like(u)
    table = ErrorTable.of(metric, low, top)
    worst, missed, alarms = u.new_zeros(()), 0, 0
    for rows in table.chunks():
        value, place = table.loss(rows).reshape(-1).max(0)
        if value > worst:
            worst = value
            missed, alarms = divmod(int(place), len(top.weights))
            missed += rows.start
    return worst, table.alarm * top.first(alarms) - table.miss * low.first(missed)


@dataclass(frozen=True)
class ErrorQueue:
    """The examples of a class in the order in which it is worst to decide them wrongly.

    Attributes:
        order: Their places in the batch.
        scores: Their scores.
        given: The weights of the whole batch, zero outside the class.
        weights: Cumulative sums of their weights, from zero.
        sums: Cumulative sums of their weighted scores, from zero.
    """

    order: Tensor
    scores: Tensor
    given: Tensor
    weights: Tensor
    sums: Tensor

    @classmethod
    def of(cls, u: Tensor, given: Tensor, *, descending: bool) -> ErrorQueue:
        """The examples with a weight, by score: positives ascending, negatives descending."""
        order = given.argsort()  # equal scores by weight: the order of the batch must not matter
        order = order[u[order].argsort(descending=descending, stable=True)]
        order = order[given[order] > 0]
        scores, own, zero = u[order], given[order], u.new_zeros(1)
        weights, sums = (torch.cat([zero, part.cumsum(0)]) for part in (own, own * scores))
        return cls(order, scores, given, weights, sums)

    def first(self, count: int) -> Tensor:
        """The weights of the first ``count`` examples, ``[n]``; equal scores share theirs."""
        taken = torch.zeros_like(self.given)
        taken[self.order[:count]] = self.given[self.order[:count]]
        if 0 < count < len(self.order) and self.scores[count - 1] == self.scores[count]:
            tied = self.order[self.scores == self.scores[count]]
            taken[tied] = self.given[tied] * (taken[tied].sum() / self.given[tied].sum())
        return taken


@dataclass(frozen=True)
class ErrorTable:
    """The loss for every number of misses (rows) and of false alarms (columns).

    Attributes:
        metric: What is measured.
        low: Positives, the lowest first.
        top: Negatives, the highest first.
        miss: What a unit of misses costs near perfection.
        alarm: What a unit of false alarms costs near perfection.
    """

    metric: Expression
    low: ErrorQueue
    top: ErrorQueue
    miss: float
    alarm: float

    @classmethod
    def of(cls, metric: Expression, low: ErrorQueue, top: ErrorQueue) -> ErrorTable:
        """The table with its prices; raises if it has too many entries."""
        if len(low.weights) * len(top.weights) > MOST_PAIRS:
            raise ValueError(
                f"{len(low.order):,} positives and {len(top.order):,} negatives have too many "
                "pairs of counts for the structural hinge; use smaller batches."
            )
        prices = _error_prices(metric, float(low.weights[-1]), float(top.weights[-1]))
        return cls(metric, low, top, *prices)

    def loss(self, rows: slice = slice(None)) -> Tensor:
        """The regret of these rows, less the weighted scores of the errors."""
        return (
            self.regret(rows) - self.miss * self.low.sums[rows, None] + self.alarm * self.top.sums
        )

    def regret(self, rows: slice = slice(None)) -> Tensor:
        """How far from perfect the metric is; 0/0 counts as the largest regret of these rows."""
        positives, negatives = self.low.weights[-1], self.top.weights[-1]
        missed, alarms = self.low.weights[rows, None], self.top.weights
        counts = (positives - missed, alarms, missed, negatives - alarms, positives, negatives)
        perfect = self.metric.of(_perfect(float(positives), float(negatives)))
        regret = (self.metric.of({(): Counts(*counts)}) - perfect).abs()
        largest = torch.where(regret.isfinite(), regret, 0.0).amax()
        return torch.where(regret.isfinite(), regret, largest)

    def chunks(self) -> Iterator[slice]:
        """Slices of the rows, to bound the memory."""
        size = max(1, PAIRS_TOGETHER // len(self.top.weights))
        for start in range(0, len(self.low.weights), size):
            yield slice(start, start + size)


def _error_prices(metric: Expression, positives: float, negatives: float) -> tuple[float, float]:
    """What one miss and one false alarm cost near perfection; a free one has the other's price."""
    miss, alarm = (abs(slope) for slope in error_slopes(metric, positives, negatives))
    if not 0 < max(miss, alarm) < float("inf"):
        raise ValueError(f"{metric} does not change when a perfect classifier errs once.")
    return miss or alarm, alarm or miss


def error_slopes(metric: Expression, positives: float, negatives: float) -> tuple[float, float]:
    """How the metric of perfect decisions changes with a miss, and with a false alarm."""
    slopes = metric.gradient(_perfect(positives, negatives))
    tp, fp, fn, tn = (float(slopes.get(((), i), 0.0)) for i in range(4))
    return fn - tp, fp - tn


def _perfect(positives: float, negatives: float) -> Tables:
    """The counts when every decision is right."""
    return {(): Counts(positives, 0.0, 0.0, negatives, positives, negatives)}
