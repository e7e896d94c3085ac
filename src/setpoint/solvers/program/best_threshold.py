"""A ratio of counts at its best threshold: a scan over the places where the bound has a kink.

Between kinks both sums are linear in the threshold, so the ratio is monotone there: the best
threshold is at a kink, one margin below a positive or above a negative. When the scores move, it
moves with the example that makes the kink. That example's pull balances the pull on all others,
as nothing changes when all scores are shifted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.solvers.program.inputs import Measured
from setpoint.solvers.program.ranked import Ranked, from_zero
from setpoint.solvers.program.ratio import Ratio


def at_best_threshold(ratio: Ratio, u: Tensor, positives: Tensor, negatives: Tensor) -> Measured:
    """The lowest bound over all thresholds, and its gradient by ``u`` (scores over margin)."""
    ranked = Ranked.of(u, positives, negatives)
    x, p, n = ranked.scores, ranked.positives, ranked.negatives
    kinks = torch.where(p > 0, x - 1, x + 1)
    losses, by_found, by_alarm = ratio.bound(p.sum(-1, keepdim=True), *_sums(ranked, kinks))
    best = torch.where(p + n > 0, losses, torch.inf).argmin(-1, keepdim=True)
    loss, threshold, *slopes = (y.gather(-1, best) for y in (losses, kinks, by_found, by_alarm))
    return loss[..., 0], ranked.unsorted(_gradient(x, p, n, threshold, *slopes))


def _sums(ranked: Ranked, thresholds: Tensor) -> tuple[Tensor, Tensor]:
    """What counts as found and as false alarms at each threshold."""
    x, p, n = ranked.scores, ranked.positives, ranked.negatives
    below = torch.searchsorted(x - 1, thresholds)  # positives less than a margin above it
    count, total = (from_zero(values).gather(-1, below) for values in (p, p * x))
    found = total - thresholds * count + p.sum(-1, keepdim=True) - count
    above = torch.searchsorted(x + 1, thresholds, right=True)  # negatives from here on count
    counts, totals = from_zero(n), from_zero(n * x)
    count = counts[..., -1:] - counts.gather(-1, above)
    total = totals[..., -1:] - totals.gather(-1, above)
    return found, total + (1 - thresholds) * count


def _gradient(
    x: Tensor, p: Tensor, n: Tensor, threshold: Tensor, by_found: Tensor, by_alarm: Tensor
) -> Tensor:
    """The mixture of the slopes on both sides of the kink that sums to zero."""
    left = by_found * torch.where(x - 1 < threshold, p, 0.0)
    left += by_alarm * torch.where(x + 1 >= threshold, n, 0.0)
    right = by_found * torch.where(x - 1 <= threshold, p, 0.0)
    right += by_alarm * torch.where(x + 1 > threshold, n, 0.0)
    start, end = (side.sum(-1, keepdim=True) for side in (left, right))
    share = (start / torch.where(start == end, 1.0, start - end)).clamp(0, 1)
    return left.lerp_(right, share)
