"""What several independent measurements leave possible together.

Each of ``k`` shares has a one-sided Clopper-Pearson bound at any tail ``q``; its deviate
``z = ndtri(1 - p)`` of the true share is at most standard normal, whatever the share. Asking every
share to keep within ``q = delta / k`` (the union bound) guards against all of them being unlucky to
the full at once. They are independent, so ``sum of max(z_i, 0)^2`` follows the chi-bar-squared law

    P(sum > x) <= sum_{i=1..k} C(k, i) 2^-k P(chi2_i > x),

and the true shares lie in the region where that sum is small, with confidence 1 - delta. A
function that moves one way with every share is largest on the region's outer face, which is covered
by boxes: for each, a vector of tails. For the difference of two equal shares the union bound is
2 x 1.96 standard errors away, the region sqrt(2) x 2.06, and nothing can do better than
sqrt(2) x 1.645.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, pi

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr

from setpoint.certify.tails import Floats

Levels = tuple[Floats, NDArray[np.int64]]

CELLS = {2: 64, 3: 24}
"""Boxes along each angle of the outer face."""
STEPS = 64
"""Deviates are rounded outwards to so many steps, since the bounds at each take long to compute."""


@lru_cache(maxsize=256)
def boxes(shares: int, delta: float, independent: bool = True) -> tuple[Levels, ...]:
    """For each share the tails that occur, and which of them every box has.

    With confidence 1 - delta the truth is in one of the boxes.
    """
    if shares == 1 or not independent or shares not in CELLS:
        return ((np.array([delta / shares]), np.zeros(1, np.int64)),) * shares
    face = np.ceil(_face(shares) * STEPS) / STEPS
    levels = [np.unique(column, return_inverse=True) for column in face.T]
    size = radius(shares, delta)
    return tuple((ndtr(-size * deviates), index) for deviates, index in levels)


def radius(shares: int, delta: float) -> float:
    """The square root of the chi-bar-squared quantile."""
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = sum(
            comb(shares, i) * 0.5**shares * float(gammaincc(i / 2, middle**2 / 2))
            for i in range(1, shares + 1)
        )
        low, high = (low, middle) if tail <= delta else (middle, high)
    return high


def _face(shares: int) -> Floats:
    """The outer corners of boxes that cover the positive part of the unit sphere."""
    angles = np.linspace(0, pi / 2, CELLS[shares] + 1)
    first, last = np.cos(angles[:-1]), np.sin(angles[1:])
    if shares == 2:
        return np.stack([first, last], 1)
    rest = last[:, None]
    corners = np.broadcast_arrays(first[:, None], rest * first, rest * last)
    return np.stack([c.ravel() for c in corners], 1)
