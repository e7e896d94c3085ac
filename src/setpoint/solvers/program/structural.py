"""The structural hinge for any metric made of counts (Joachims, 2005), by a table of its errors.

The loss is the worst case over all ways to decide: how much worse than perfect the metric would be,
less how much the scores speak against it. However many positives are missed, the worst ones to miss
are the lowest, and the worst false alarms are the highest negatives: instead of ``2^n`` decisions
there are ``(P + 1)(N + 1)`` pairs of counts to look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.rates import Expression
from setpoint.solvers.program.inputs import Measured, batch_loss
from setpoint.solvers.program.mistakes import Mistakes, check_metric


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

    def measure(scores: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
        losses, gradients = by_output(metric, (scores - threshold) / margin, positives, negatives)
        return losses, gradients.div_(margin)

    return batch_loss(measure, scores, labels, weights)


def by_output(metric: Expression, u: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
    """The worst decisions of every output: losses ``[c]``, and gradients by ``u`` ``[c, n]``."""
    rows = zip(u, positives, negatives, strict=True)
    losses, gradients = zip(*(_worst(metric, *row) for row in rows), strict=True)
    return torch.stack(losses), torch.stack(gradients)


def _worst(metric: Expression, u: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
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
