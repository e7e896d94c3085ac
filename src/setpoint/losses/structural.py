"""The structural hinge for any metric made of counts (Joachims, 2005), by a table of its errors.

The loss is the worst case over all ways to decide: how much worse than perfect the metric would be,
less how much the scores speak against it. However many positives are missed, the worst ones to miss
are the lowest, and the worst false alarms are the highest negatives: instead of ``2^n`` decisions
there are ``(P + 1)(N + 1)`` pairs of counts to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.losses.base import ValueAndGradient, batch_loss
from setpoint.rates import Counts, Expression, Tables


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

    Convex in the scores. They are weighed by what one error costs near perfection, so that a single
    error stops costing where its score is on the right side by about the margin. For
    ``metric=error`` the loss is the mean hinge.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        metric: Any expression of rates of everyone, such as ``f_score(1)`` or ``jaccard``.
        weights: Optional, one an example; weight 0 is absent. An example is decided as a whole, so
            weight 2 is not quite two copies, which could be decided apart.
        margin: How far from the threshold, in units of the scores, a decision has to be to be safe.
        threshold: Where decisions are made.

    Example:
        >>> import torch
        >>> from setpoint import f_score
        >>> scores = torch.tensor([2.0, 0.5, -0.5], requires_grad=True)
        >>> loss = structural_loss(scores, torch.tensor([1, 1, 0]), metric=f_score(1))
        >>> loss.backward()          # worst: miss both, 1 - (2 + 0.5) / 4
        >>> loss.item(), scores.grad.tolist()
        (0.375, [-0.25, -0.25, 0.0])
    """
    margin, threshold = positive(margin, "margin"), number(threshold, "threshold")
    check_metric(metric)

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        losses, gradients = by_output(metric, (scores - threshold) / margin, positives, negatives)
        return losses, gradients.div_(margin)

    return batch_loss(measure, scores, labels, weights)


def by_output(
    metric: Expression, u: Tensor, positives: Tensor, negatives: Tensor
) -> ValueAndGradient:
    """The worst decisions of every output: losses ``[c]``, and gradients by ``u`` ``[c, n]``."""
    rows = zip(u, positives, negatives, strict=True)
    losses, gradients = zip(*(_worst(metric, *row) for row in rows), strict=True)
    return torch.stack(losses), torch.stack(gradients)


def _worst(metric: Expression, u: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
    """The worst decisions of one output, and their gradient by ``u``."""
    low, top = _Queue.of(u, positives, descending=False), _Queue.of(u, negatives, descending=True)
    if not (len(low.order) and len(top.order)):  # a class is missing: the result is not used
        return u.new_zeros(()), torch.zeros_like(u)
    mistakes = Mistakes.of(metric, low.weights, top.weights)
    best, missed, alarms = u.new_zeros(()), 0, 0
    for part in mistakes.parts():
        worth = mistakes.worth(low.sums, top.sums, part)
        value, place = worth.reshape(-1).max(0)
        if value > best:
            best = value
            missed, alarms = divmod(int(place), len(top.weights))
            missed += part.start
    gradient = mistakes.alarm * top.first(alarms) - mistakes.miss * low.first(missed)
    return best, gradient


@dataclass(frozen=True)
class _Queue:
    """The examples of a class in the order in which it is worst to get them wrong."""

    order: Tensor
    scores: Tensor
    given: Tensor  # the weights of the batch
    weights: Tensor  # running sums from zero, as are `sums` of weighted scores
    sums: Tensor

    @classmethod
    def of(cls, u: Tensor, given: Tensor, *, descending: bool) -> _Queue:
        order = given.argsort()  # equal scores by weight: the order of the batch must not matter
        order = order[u[order].argsort(descending=descending, stable=True)]
        order = order[given[order] > 0]
        scores, own, zero = u[order], given[order], u.new_zeros(1)
        weights, sums = (torch.cat([zero, part.cumsum(0)]) for part in (own, own * scores))
        return cls(order, scores, given, weights, sums)

    def first(self, count: int) -> Tensor:
        """The weights of the first ``count``, back in the batch; equal scores share theirs."""
        taken = torch.zeros_like(self.given)
        taken[self.order[:count]] = self.given[self.order[:count]]
        if 0 < count < len(self.order) and self.scores[count - 1] == self.scores[count]:
            tied = self.order[self.scores == self.scores[count]]
            taken[tied] = self.given[tied] * (taken[tied].sum() / self.given[tied].sum())
        return taken


# ------------------------------------------------------------------------------------------------
# What a metric made of counts says of every number of misses and false alarms.


TOGETHER = 2**20
"""How many pairs of counts are looked at together,"""
AT_MOST = 2**31
"""and how many at most: some minutes."""


@dataclass(frozen=True)
class Mistakes:
    """The table of all mistakes of a batch: misses by row, false alarms by column.

    Args:
        metric: What is measured.
        misses: Running sums of the weights of missed positives, from zero to all.
        alarms: Running sums of the weights of false alarms.
        miss: What a unit of misses costs near perfection,
        alarm: and a unit of false alarms.
    """

    metric: Expression
    misses: Tensor
    alarms: Tensor
    miss: float
    alarm: float

    @classmethod
    def of(cls, metric: Expression, misses: Tensor, alarms: Tensor) -> Mistakes:
        """The table with its prices; raises if it is too large to look at."""
        if len(misses) * len(alarms) > AT_MOST:
            raise ValueError(
                f"{len(misses) - 1:,} positives and {len(alarms) - 1:,} negatives have too many "
                "pairs of counts for the structural hinge; use smaller batches."
            )
        return cls(metric, misses, alarms, *_prices(metric, float(misses[-1]), float(alarms[-1])))

    def regret(self, rows: slice = slice(None)) -> Tensor:
        """How far from perfect the metric is; 0/0 is as far as the farthest of these rows."""
        positives, negatives = self.misses[-1], self.alarms[-1]
        missed, alarms = self.misses[rows, None], self.alarms
        counts = (positives - missed, alarms, missed, negatives - alarms, positives, negatives)
        perfect = self.metric.of(_perfect(float(positives), float(negatives)))
        regret = (self.metric.of({(): Counts(*counts)}) - perfect).abs()
        worst = torch.where(regret.isfinite(), regret, 0.0).amax()
        return torch.where(regret.isfinite(), regret, worst)

    def worth(self, missed: Tensor, alarmed: Tensor, rows: slice = slice(None)) -> Tensor:
        """The regret less what the scores say against it, by running sums of weighted scores."""
        return self.regret(rows) - self.miss * missed[rows, None] + self.alarm * alarmed

    def parts(self) -> Iterator[slice]:
        """Rows in groups of bounded size."""
        size = max(1, TOGETHER // len(self.alarms))
        for start in range(0, len(self.misses), size):
            yield slice(start, start + size)


def check_metric(metric: object) -> None:
    """An expression of rates of everyone."""
    if not isinstance(metric, Expression):
        raise TypeError(f"metric must be made of rates, such as f_score(1); got {metric!r}.")
    if any(rate.where for rate in metric.rates()):
        raise ValueError(f"The structural hinge knows no slices; got {metric}.")


def _prices(metric: Expression, positives: float, negatives: float) -> tuple[float, float]:
    """What one miss and one false alarm cost near perfection; a free one costs like the other."""
    miss, alarm = (abs(slope) for slope in price(metric, positives, negatives))
    if not 0 < max(miss, alarm) < float("inf"):
        raise ValueError(f"{metric} does not change when a perfect classifier errs once.")
    return miss or alarm, alarm or miss


def price(metric: Expression, positives: float, negatives: float) -> tuple[float, float]:
    """How the metric of perfect decisions changes with a miss, and with a false alarm."""
    slopes = metric.gradient(_perfect(positives, negatives))
    tp, fp, fn, tn = (float(slopes.get(((), i), 0.0)) for i in range(4))
    return fn - tp, fp - tn


def _perfect(positives: float, negatives: float) -> Tables:
    """The counts when every decision is right."""
    return {(): Counts(positives, 0.0, 0.0, negatives, positives, negatives)}
