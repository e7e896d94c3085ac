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
    found, alarms, total = _found(ranked, kinks), _alarms(ranked, kinks), p.sum(-1, keepdim=True)
    ratios = ratio.of(total, found.clamp_(min=0), alarms)
    best = torch.where(p + n > 0, ratios, -1.0).argmax(-1, keepdim=True)
    threshold, found, alarms = (y.gather(-1, best) for y in (kinks, found, alarms))
    loss, *slopes = ratio.bound(total, found, alarms)
    return loss[..., 0], ranked.unsorted(_gradient(x, p, n, threshold, *slopes))


def _found(ranked: Ranked, thresholds: Tensor) -> Tensor:
    """What counts as found at each threshold: positives less than a margin above it in part."""
    p, near = ranked.positives, torch.searchsorted(ranked.scores - 1, thresholds)
    count = from_zero(p).gather(-1, near)
    found = from_zero(p * ranked.scores).gather(-1, near)
    return found.sub_(count).addcmul_(thresholds, count, value=-1).add_(p.sum(-1, keepdim=True))


def _alarms(ranked: Ranked, thresholds: Tensor) -> Tensor:
    """What counts as false alarms: negatives from a margin below the threshold on."""
    n, near = ranked.negatives, torch.searchsorted(ranked.scores + 1, thresholds, right=True)
    count, total = from_zero(n), from_zero(n * ranked.scores)
    count = count[..., -1:] - count.gather(-1, near)
    total = total[..., -1:] - total.gather(-1, near)
    return total.addcmul_(1 - thresholds, count)


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
