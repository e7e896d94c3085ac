"""How far scores spread: the unit that the width of a soft step is measured in."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.problems.scan import Cuts

TAIL = 0.05
FENCE = 1.0


def spread(cuts: Cuts) -> Tensor:
    """The weighted population deviation of the scores, ``[c]``; 0 for constant scores.

    Robust: scores farther outside the middle 90 % than that middle is wide are moved to this fence
    (for a Gaussian that is nobody: it stands at 4.9 deviations). One score of 1e3 among 512
    changes the result by about two per cent.
    """
    scores, (positives, negatives) = cuts.scores, cuts.running[()]
    running = positives + negatives
    weights, total = running.diff(dim=-1), running[:, -1:]
    weights = weights / torch.where(total > 0, total, 1.0)
    low, high = (_quantile(cuts, running, q) for q in (1 - TAIL, TAIL))
    middle = high - low
    reach = torch.where(middle > 0, FENCE * middle, torch.inf)  # almost all tied: no fence
    bottom, top = cuts.score(cuts.present[:, None] - 1), scores[:, :1]
    clipped = scores.clamp(torch.maximum(low - reach, bottom), torch.minimum(high + reach, top))
    centre = (weights * clipped).sum(-1, keepdim=True)
    deviation = (weights * (clipped - centre) ** 2).sum(-1).sqrt()
    noise = 1e-13 * torch.maximum(top.abs(), bottom.abs())[:, 0]
    return torch.where(deviation > noise, deviation, 0.0)


def _quantile(cuts: Cuts, running: Tensor, share: float) -> Tensor:
    """The score with ``share`` of the weight at or above it, ``[c, 1]``; copies equal weights."""
    target = share * running[:, -1:] * (1 - 1e-12)
    return cuts.score((running[:, 1:] < target).sum(-1, keepdim=True))
