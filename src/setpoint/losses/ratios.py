"""Losses for ratios of counts: the F score and the Jaccard index, in closed form or by a scan.

A positive at ``f`` counts as found by at most ``min(1, f / margin)``, a negative as a false alarm
by at least ``max(0, 1 + f / margin)``: both on the safe side of the decision ``f > 0``. With their
sums T and F for the true counts, a ratio such as ``2 T / (P + T + F)`` is a bound on the true one,
and by the substitution of Charnes and Cooper a linear program
(:func:`setpoint.programs.as_program`).

The best threshold is found by a scan. Between kinks both sums are linear in the threshold, so the
ratio is monotone there: the best threshold is at a kink, one margin below a positive or above a
negative, and it moves with the example that makes the kink. That example's gradient balances those
of all others, as nothing changes when all scores are shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.losses.base import MetricLoss, Ranked, ValueAndGradient, from_zero
from setpoint.losses.writing import LinearProgram, ProgramBuilder, TwoClasses

DecisionThreshold = float | Literal["best"]


@dataclass(frozen=True)
class Ratio:
    """``top T / (fixed P + moving T + F)`` with P positives, T of them found, F false alarms."""

    top: float
    fixed: float
    moving: float

    def of(self, positives: Any, seen: Any, alarms: Any) -> Any:
        """The ratio, where ``seen`` is the weight of what is found, at least 0."""
        return self.top * seen / self._below(positives, seen, alarms)

    def _below(self, positives: Any, seen: Any, alarms: Any) -> Any:
        below = self.fixed * positives + alarms + self.moving * seen
        return below + (below == 0)

    def bound(
        self, positives: Any, found: Any, alarms: Any, *, lift: bool = False
    ) -> tuple[Any, Any, Any]:
        """One minus the ratio, and its slopes by ``found`` and by ``alarms``; tensors or arrays.

        Where ``found`` is negative the ratio counts as 0. With ``lift`` the loss goes on to rise
        there, by the slope it has where nothing is found and nothing is a false alarm.
        """
        some = found > 0
        seen = found * some
        below = self._below(positives, seen, alarms)
        ratio = self.top * seen / below
        by_found = some * self.top * (below - self.moving * seen) / below**2
        if lift:
            steep = ~some * self.top / (self.fixed * positives + (positives == 0))
            return 1 - ratio - steep * found, -by_found - steep, ratio / below
        return 1 - ratio, -by_found, ratio / below


JACCARD = Ratio(1, 1, 0)


def f_score_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    beta: float = 1.0,
    margin: float = 1.0,
    threshold: DecisionThreshold = "best",
    lift: bool = True,
) -> Tensor:
    """An upper bound on one minus the F score of the decisions ``score > threshold``.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        beta: How many times as much recall counts as precision.
        margin: How far from the threshold, in units of the scores, a decision has to be to be safe.
        threshold: ``"best"``: where this batch's bound is best; the loss does not change when all
            scores are shifted, so there is nothing to gain from accepting everybody. Choose the
            threshold to deploy afterwards (``Problem(maximize=f_score(1)).choose``). A float: the
            decisions at this threshold; training from scratch may end by accepting everybody.
        lift: At a given threshold the bound is constant while the positives are on average below
            it: 1, without a gradient, and training would never start. With ``lift`` the loss goes
            on to rise above 1 there and pulls the positives up; without, it is the value of the
            linear program. At the best threshold this never happens.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.5, -0.5], requires_grad=True)
        >>> labels = torch.tensor([1, 1, 0])
        >>> loss = f_score_loss(scores, labels, threshold=0.0)     # T = 1.5, F = 0.5, P = 2
        >>> loss.backward()
        >>> loss.item(), scores.grad.tolist()
        (0.25, [0.0, -0.3125, 0.1875])
        >>> round(f_score_loss(scores, labels).item(), 4)          # at -0.5: T = 2, F = 1
        0.2
    """
    return f_score_bound(margin, beta, threshold, lift).loss(scores, labels, weights)


def jaccard_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: DecisionThreshold = "best",
    lift: bool = True,
) -> Tensor:
    """An upper bound on one minus the Jaccard index (intersection over union).

    Args:
        scores: Logits, as in :func:`f_score_loss`.
        labels: 0 or 1, as in :func:`f_score_loss`.
        weights: One per example, as in :func:`f_score_loss`.
        margin: As in :func:`f_score_loss`.
        threshold: As in :func:`f_score_loss`.
        lift: As in :func:`f_score_loss`.

    Examples:
        >>> scores, labels = torch.tensor([2.0, 0.5, -1.0]), torch.tensor([1, 1, 0])
        >>> round(jaccard_loss(scores, labels, threshold=0.0).item(), 3)
        0.25
    """
    return RatioBound(margin, JACCARD, threshold, lift).loss(scores, labels, weights)


@dataclass(frozen=True)
class RatioBound(MetricLoss):
    """The loss of any ratio of this form, and its program; options as in :func:`f_score_loss`."""

    ratio: Ratio
    threshold: DecisionThreshold = "best"
    lift: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.threshold, str):
            number(self.threshold, "threshold")
        elif self.threshold != "best":
            raise ValueError(f"threshold must be a number or 'best'; got {self.threshold!r}.")

    @property
    def takes_arrays(self) -> bool:
        """The bound at a given threshold is plain arithmetic."""
        return self.threshold != "best"

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        """The bound at the threshold, or the lowest one over all thresholds."""
        classes = (positives, negatives)
        if self.threshold == "best":
            value, gradient = at_best_threshold(self.ratio, scores / self.margin, *classes)
        else:
            u = (scores - self.threshold) / self.margin
            value, gradient = at_threshold(self.ratio, u, *classes, self.lift)
        return value, gradient / self.margin

    def write(self, classes: TwoClasses) -> LinearProgram:
        """The substitution of Charnes and Cooper: everything times ``t``, the denominator at 1.

        Misses ``x_i >= t (1 - u_i)`` and alarms ``w_j >= t (1 + u_j)``, all at least 0. A free
        threshold, times ``t``, is one more variable without a sign. With ``lift`` a second program
        stands beside it: by how much the misses exceed the positives.
        """
        ratio, total = self.ratio, classes.positives
        at = 0.0 if self.threshold == "best" else self.threshold
        u, v = ((x - at) / self.margin for x in (classes.high, classes.low))
        program, one = ProgramBuilder(), u.new_ones(())
        t = program.variables(-ratio.top * total)
        x = program.variables(ratio.top * classes.high_weights)
        w = program.variables(torch.zeros_like(v))
        up, down = [(t, 1 - u), (x, -one)], [(t, 1 + v), (w, -one)]
        if self.threshold == "best":
            level = program.variables(u.new_zeros(1), free=True)
            up, down = [*up, (level, one)], [*down, (level, -one)]
        program.at_most(torch.zeros_like(u), *up)
        program.at_most(torch.zeros_like(v), *down)
        if self.lift and self.threshold != "best":
            miss = program.variables(torch.zeros_like(u))
            over = program.variables(ratio.top / (ratio.fixed * total))
            program.at_most(u - 1, (miss, -one))
            program.sum_at_most(total, (miss, classes.high_weights), (over, -one))
        scale = (t, (ratio.fixed + ratio.moving) * total)
        found = (x, -ratio.moving * classes.high_weights)
        program.sum_equal(1.0, scale, found, (w, classes.low_weights))
        return program.build(offset=1.0)


def f_score_bound(
    margin: float, beta: float, threshold: DecisionThreshold, lift: bool
) -> RatioBound:
    """The bound of the F score: recall counts ``beta`` times as much as precision."""
    square = positive(beta, "beta") ** 2
    return RatioBound(margin, Ratio(1 + square, square, 1), threshold, lift)


def at_threshold(ratio: Ratio, u: Any, positives: Any, negatives: Any, lift: bool) -> Any:
    """The bound for decisions ``u > 0``, and its gradient by ``u``; tensors or arrays."""
    found = (positives * u.clip(max=1)).sum(-1)
    alarms = (negatives * (1 + u).clip(min=0)).sum(-1)
    value, by_found, by_alarm = ratio.bound(positives.sum(-1), found, alarms, lift=lift)
    gradient = positives * (u < 1) * by_found[:, None]
    return value, gradient + negatives * (u > -1) * by_alarm[:, None]


def at_best_threshold(
    ratio: Ratio, u: Tensor, positives: Tensor, negatives: Tensor
) -> ValueAndGradient:
    """The lowest bound over all thresholds, and its gradient by ``u`` (scores over margin)."""
    ranked = Ranked.of(u, positives, negatives)
    x, p, n = ranked.scores, ranked.positives, ranked.negatives
    kinks = torch.where(p > 0, x - 1, x + 1)
    found, alarms, total = (
        _found_at(ranked, kinks),
        _alarms_at(ranked, kinks),
        p.sum(-1, keepdim=True),
    )
    ratios = ratio.of(total, found.clamp_(min=0), alarms)
    best = torch.where(p + n > 0, ratios, -1.0).argmax(-1, keepdim=True)
    threshold, found, alarms = (y.gather(-1, best) for y in (kinks, found, alarms))
    loss, *slopes = ratio.bound(total, found, alarms)
    return loss[..., 0], ranked.unsorted(_kink_gradient(x, p, n, threshold, *slopes))


def _found_at(ranked: Ranked, thresholds: Tensor) -> Tensor:
    """The sum T at each threshold: positives less than a margin above it count in part."""
    p, near = ranked.positives, torch.searchsorted(ranked.scores - 1, thresholds)
    count = from_zero(p).gather(-1, near)
    found = from_zero(p * ranked.scores).gather(-1, near)
    return found.sub_(count).addcmul_(thresholds, count, value=-1).add_(p.sum(-1, keepdim=True))


def _alarms_at(ranked: Ranked, thresholds: Tensor) -> Tensor:
    """The sum F at each threshold: negatives less than a margin below it count in part."""
    n, near = ranked.negatives, torch.searchsorted(ranked.scores + 1, thresholds, right=True)
    count, total = from_zero(n), from_zero(n * ranked.scores)
    count = count[..., -1:] - count.gather(-1, near)
    total = total[..., -1:] - total.gather(-1, near)
    return total.addcmul_(1 - thresholds, count)


def _kink_gradient(
    x: Tensor, p: Tensor, n: Tensor, threshold: Tensor, by_found: Tensor, by_alarm: Tensor
) -> Tensor:
    """The convex combination of the gradients on both sides of the kink that sums to zero."""
    left = by_found * torch.where(x - 1 < threshold, p, 0.0)
    left += by_alarm * torch.where(x + 1 >= threshold, n, 0.0)
    right = by_found * torch.where(x - 1 <= threshold, p, 0.0)
    right += by_alarm * torch.where(x + 1 > threshold, n, 0.0)
    start, end = (side.sum(-1, keepdim=True) for side in (left, right))
    share = (start / torch.where(start == end, 1.0, start - end)).clamp(0, 1)
    return left.lerp_(right, share)
