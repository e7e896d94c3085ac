"""How sure a counted share is: Clopper and Pearson's interval, exact for every sample size."""

from __future__ import annotations

from typing import NamedTuple

from scipy.special import betaincinv

from setpoint._checks import share, whole


class Interval(NamedTuple):
    """From ``low`` to ``high``; each end by itself is wrong at most ``1 - confidence`` often."""

    low: float
    high: float


def clopper_pearson(count: int, total: int, confidence: float = 0.95) -> Interval:
    """The interval of a share, ``count`` of ``total``.

    Each end is a one-sided bound with the given confidence, so that the upper end on calibration
    data is the very number a certificate proves. Both ends together hold with ``2 confidence - 1``.

    Example:
        >>> low, high = clopper_pearson(0, 299)
        >>> low, round(high, 4)                  # 299 is the least number that shows "below 1 %"
        (0.0, 0.01)
    """
    n = whole(total, "total", least=0)
    k = whole(count, "count", least=0)
    if k > n:
        raise ValueError(f"count is a part of total; got {k} of {n}.")
    risk = 1 - share(confidence, "confidence", ends=False)
    low = float(betaincinv(k, n - k + 1, risk)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - risk)) if k < n else 1.0
    return Interval(low, high)
