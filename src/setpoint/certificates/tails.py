"""The binomial law, exactly: tails, the shares they leave possible, and how many examples it takes.

``k`` of ``n`` independent examples do something that each does with an unknown share ``p``. The
share is at most ``upper(k, n, tail)`` (Clopper and Pearson), wrongly so with probability at most
``tail``, because the claim is false only if ``P(Bin(n, p) <= k) < tail`` has happened.

Everything is an incomplete beta function, so ``scipy.special`` is enough; ``scipy.stats`` has the
same numbers and takes seconds to import.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

_ROUNDING = 1e-9
"""0.29 of 100 is 29, whatever floats make of it."""


def prob_at_most(count: Any, n: Any, share: Any) -> Any:
    """``P(Bin(n, share) <= count)``."""
    count, n = np.asarray(count, float), np.asarray(n, float)
    inside = (count >= 0) & (count < n)
    value = betaincc(np.where(inside, count + 1, 1), np.where(inside, n - count, 1), share)
    return np.where(inside, value, np.where(count < 0, 0.0, 1.0))


def prob_at_least(count: Any, n: Any, share: Any) -> Any:
    """``P(Bin(n, share) >= count)``."""
    count, n = np.asarray(count, float), np.asarray(n, float)
    inside = (count > 0) & (count <= n)
    value = betainc(np.where(inside, count, 1), np.where(inside, n - count + 1, 1), share)
    return np.where(inside, value, np.where(count > n, 0.0, 1.0))


def upper(count: Any, n: Any, tail: Any) -> Any:
    """The largest share that ``count`` of ``n`` leaves possible, wrong with probability ``tail``.

    Examples:
        >>> round(float(upper(0, 299, 0.05)), 4)  # 299 without an event prove 1 %
        0.01
    """
    count, n = np.asarray(count, float), np.asarray(n, float)
    inside = (count >= 0) & (count < n)
    value = betainccinv(np.where(inside, count + 1, 1), np.where(inside, n - count, 1), tail)
    return np.where(inside, value, np.where(count < 0, 0.0, 1.0))


def lower(count: Any, n: Any, tail: Any) -> Any:
    """The smallest share that ``count`` of ``n`` leaves possible, wrong with probability ``tail``.

    Examples:
        >>> round(float(lower(59, 59, 0.05)), 3)
        0.95
    """
    count, n = np.asarray(count, float), np.asarray(n, float)
    inside = (count > 0) & (count <= n)
    value = betaincinv(np.where(inside, count, 1), np.where(inside, n - count + 1, 1), tail)
    return np.where(inside, value, np.where(count > n, 1.0, 0.0))


def allowed(n: int, share: float, tail: float) -> int:
    """How many events among ``n`` still prove "at most ``share``"; -1 if not even none does.

    The largest ``m`` with ``P(Bin(n, share) <= m) <= tail``.
    """
    low, high = -1, n  # P(Bin <= n) = 1 > tail
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if prob_at_most(middle, n, share) <= tail else (low, middle)
    return low


def allowed_on_average(n: int, share: float) -> int:
    """How many events among ``n`` keep the expected share of the next example at ``share``.

    Conformal risk control: with ``m`` events allowed, the next one is an event with probability
    at most ``(m + 1) / (n + 1)``.
    """
    return math.floor(share * (n + 1) * (1 + _ROUNDING) + _ROUNDING) - 1


def needed(share: float, tail: float) -> int | None:
    """The fewest examples that can prove "at most ``share``" (none of them an event).

    Examples:
        >>> needed(0.01, 0.05), needed(0.001, 0.05)
        (299, 2995)
    """
    if share <= 0:
        return None
    if share >= 1:
        return 0
    n = max(1, math.ceil(math.log(tail) / math.log1p(-share)) - 1)
    return n if prob_at_most(0, n, share) <= tail else n + 1


def needed_on_average(share: float) -> int | None:
    """The fewest examples with which :func:`allowed_on_average` allows none at all."""
    if share <= 0:
        return None
    n = max(1, math.ceil(1 / share) - 2)
    while allowed_on_average(n, share) < 0:
        n += 1
    return n
