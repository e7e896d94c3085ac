"""How far scores spread: the unit that the width of a soft step is measured in."""

from __future__ import annotations

from setpoint.axes.arrays import bisect
from setpoint.axes.cuts import Cuts
from setpoint.rates import Array

QUANTILES = (0.95 - 1e-12, 0.05 - 1e-12)
"""Shares of the weight, counted from the highest score; copies of an example equal its weight."""


def spread(cuts: Cuts) -> Array:
    """The weighted population deviation of the scores, ``[c]``; 0 for constant scores.

    Robust: scores farther outside the middle 90 % than that middle is wide are moved to this fence
    (for a Gaussian that is nobody: it stands at 4.9 deviations). One score of 1e3 among 512
    changes the result by about two per cent.
    """
    xp, scores, (positives, negatives) = cuts.xp, cuts.scores, cuts.running[()]
    running = positives + negatives
    weights = running[:, 1:] - running[:, :-1]
    total = running[:, -1:] + (running[:, -1:] == 0)
    ends = cuts.score(bisect(xp, running, cuts.for_each(QUANTILES) * total) - 1)
    low, high = ends[:, :1], ends[:, 1:]
    reach = high - low
    reach = xp.where(reach > 0, reach, float("inf"))  # almost all tied: no fence
    bottom, top = cuts.score(cuts.present[:, None] - 1), scores[:, :1]
    bottom, top = xp.maximum(low - reach, bottom), xp.minimum(high + reach, top)
    clipped = xp.minimum(xp.maximum(scores, bottom), top)
    away = clipped - (weights * clipped).sum(-1)[:, None] / total
    variance = (weights * away * away).sum(-1) / total[:, 0]
    noise = 1e-26 * xp.maximum(top * top, bottom * bottom)[:, 0]
    return xp.sqrt(variance * (variance > noise))
