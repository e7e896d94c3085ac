"""The chance of a class to be in a random set of ``k``: the soft reading of the first ``k``.

A set is drawn with a probability proportional to the product of ``exp(z)`` of its members. For one
member that is a softmax; as the scores are stretched the set becomes that of the ``k`` highest.
Sums over all sets are elementary symmetric polynomials, added up in logarithms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def chances(z: Floats, k: int) -> Floats:
    """The chance of every class to be among ``k``, ``[n, K]``; for all of them 1."""
    count = z.shape[1]
    if k <= 0:
        return np.zeros_like(z)
    if k >= int((z > -np.inf).sum(1).min()):
        return np.where(z > -np.inf, 1.0, 0.0)
    ahead = _running(z, k)
    behind = _running(z[:, ::-1], k)
    total = ahead[count][:, k]
    result = np.empty_like(z)
    for i in range(count):
        others = [ahead[i][:, a] + behind[count - 1 - i][:, k - 1 - a] for a in range(k)]
        result[:, i] = np.exp(z[:, i] + np.logaddexp.reduce(others, axis=0) - total)
    return np.minimum(result, 1.0)


def chance_of(z: Floats, labels: NDArray[np.int64], k: int) -> tuple[Floats, Floats]:
    """The chance of each example's own class ``[n]``, and its slopes by ``z`` ``[n, K]``.

    With ``c`` the chance of another class, and ``c'`` the same once the own one is in, the slope is
    ``own * (c' - c)``.
    """
    rows = np.arange(len(labels))
    every = chances(z, k)
    own = every[rows, labels]
    rest = z.copy()
    rest[rows, labels] = -np.inf
    slopes = own[:, None] * (chances(rest, k - 1) - every)
    slopes[rows, labels] = own * (1 - own)
    return own, slopes


def _running(z: Floats, k: int) -> list[Floats]:
    """After each class the logarithms of the polynomials of order 0 to ``k``, ``[n, k + 1]``."""
    sums = np.full((len(z), k + 1), -np.inf)
    sums[:, 0] = 0.0
    found = [sums]
    for column in z.T:
        longer = sums.copy()
        with np.errstate(invalid="ignore"):
            longer[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + column[:, None])
        sums = longer
        found.append(sums)
    return found
