"""Means of bounded variables by betting: exact for every law and every sample size.

Let ``x_i`` be independent, at least ``-loss``, with a mean of at most zero if a hypothesis is true.
A gambler who stakes the same share of his capital on every ``x_i`` multiplies it by
``1 + stake * x_i / loss``, for any stake below 1. If the hypothesis is true, the expected capital
is at most what he began with; so is that of several gamblers who share one unit of money. By
Markov's inequality they reach ``1 / delta`` with probability ``delta`` at most, and if they do, the
hypothesis is refuted (Waudby-Smith and Ramdas 2024). Stakes are fixed in advance, so the capital
does not depend on the order of the rows and rises with every ``x_i``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from setpoint.axes.arrays import Floats

STAKES = (0.2, 0.5, 0.9)
"""For many rows, for some, for few; chosen by simulation."""
FINE_STAKES = tuple(0.9 * 0.5**i for i in range(10))
"""From the best stakes for a few rows to those for a million."""


def log_capital(gains: Floats, loss: float, stakes: tuple[float, ...] = STAKES) -> float:
    """The logarithm of the capital after betting on ``gains``, none of them below ``-loss``."""
    capital = [np.log1p(stake / loss * gains).sum() for stake in stakes]
    return float(logsumexp(capital) - np.log(len(stakes)))


def upper_mean(values: Any, highest: float, tail: float) -> float:
    """An upper bound of the mean of independent ``values`` between 0 and ``highest``.

    It is wrong with probability at most ``tail``.

    Examples:
        >>> round(upper_mean(np.zeros(299), 1.0, 0.05), 3)  # Clopper and Pearson: 0.01
        0.019
    """
    x = np.asarray(values, float)
    low, high = float(x.mean()) if len(x) else float(highest), float(highest)
    for _ in range(40):  # the higher the mean that is tested, the easier it is refuted
        middle = (low + high) / 2
        refuted = highest > middle and (
            log_capital(middle - x, highest - middle, FINE_STAKES) >= -np.log(tail)
        )
        low, high = (low, middle) if refuted else (middle, high)
    return high
