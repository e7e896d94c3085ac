"""Bounds of a function of two independent shares by an exact unconditional test.

A gap between two groups, a balanced error, or precision at a declared share of positives is a
function ``f(a, b)`` of two shares of which ``x`` of ``n`` and ``y`` of ``m`` were counted, all
independent. With ``a`` and ``b`` turned so that ``f`` rises with both, ``f >= c`` is refuted if the
chance of an estimate as low as the observed one, ``P(f(X / n, Y / m) <= f(x / n, y / m))``, is
small wherever ``f(a, b) >= c``. That chance falls with both shares, so its largest value lies on
the curve ``f(a, b) = c``.

The curve passes through shares that the counts make incredible, and the chance is often largest
there. So only the part inside a confidence set of level ``1 - gamma`` is looked at, and ``gamma``
is added (Berger and Boos 1994). Compared with the region of :mod:`setpoint.certificates.regions`,
which bounds every function of the shares at once, this proves more of the one function asked for:
a balanced error of 10 % is proved to be at most 12 % in 48 instead of 33 % of samples of 1,200.

The largest value on the curve is bounded from above, not looked up on a grid: on a piece from
``(a, b')`` to ``(a', b)``, with ``a < a'`` and ``b < b'``, the chance is at most that of
``(a, b)``. Pieces whose bound is too high are halved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from setpoint.axes.arrays import Floats
from setpoint.certificates.tails import lower, upper

Function = Callable[[Any, Any], Any]
"""A function of two shares, for arrays."""
GAMMA_PART = 1 / 25
"""The part of the risk that the confidence set of the two shares spends."""
_PIECES, _ROUNDS, _STEPS = 8, 7, 12
_GRID = np.linspace(0, 1, 33)
_WINDOW = 7.5
"""Counts further than so many deviations from their mean are left out; they have no weight."""
_NEGLECTED = 1e-12


@dataclass(frozen=True)
class TwoShares:
    """Counts of two shares, and a function that rises with both.

    Attributes:
        function: Of the two shares.
        counts: How many were counted, of each.
        sizes: Among how many.
    """

    function: Function
    counts: tuple[int, int]
    sizes: tuple[int, int]

    def upper_bound(self, delta: float, highest: float) -> float:
        """A bound of the function at the true shares, wrong with probability ``delta``.

        Args:
            delta: The risk.
            highest: A value above which nothing is looked for.
        """
        (x, y), (n, m) = self.counts, self.sizes
        gamma = GAMMA_PART * delta
        box = [
            (float(lower(k, size, gamma / 4)), float(upper(k, size, gamma / 4)))
            for k, size in ((x, n), (y, m))
        ]
        law = _Law(self, box)
        low, high = float(self.function(x / n, y / m)), highest
        if not np.isfinite([low, high]).all() or low >= high:
            return highest
        for _ in range(_STEPS):  # the higher the value that is tested, the easier it is refuted
            middle = (low + high) / 2
            low, high = (low, middle) if law.refutes(middle, delta - gamma) else (middle, high)
        return high


class _Law:
    """The chance of an estimate as low as the observed one, at any two shares of a box."""

    def __init__(self, seen: TwoShares, box: list[tuple[float, float]]) -> None:
        self.function, self.box = seen.function, box
        (n, m), (x, y) = seen.sizes, seen.counts
        self.laws = [_Binomial(size, ends) for size, ends in zip(seen.sizes, box, strict=True)]
        first, second = (law.counts for law in self.laws)
        observed = float(self.function(x / n, y / m))
        slack = 1e-12 * max(1.0, abs(observed))
        low, high = np.full(len(first), -1), np.full(len(first), len(second) - 1)
        while (low < high).any():  # the last place of the second count with an estimate as low
            middle = (low + high + 1) // 2
            fits = self.function(first / n, second[middle] / m) <= observed + slack
            low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
        self.last = low

    def chance(self, a: Floats, b: Floats) -> Floats:
        """``P(f(X / n, Y / m) <= observed)`` at each pair of shares."""
        weights = self.laws[0].weights(a)
        below = np.cumsum(self.laws[1].weights(b), axis=1)
        below = np.concatenate([np.zeros((len(b), 1)), below], axis=1)
        return np.asarray((weights * below[:, self.last + 1]).sum(1) + _NEGLECTED)

    def refutes(self, level: float, risk: float) -> bool:
        """Whether the chance is at most ``risk`` wherever the function is ``level`` or more."""
        (a0, a1), (b0, b1) = self.box
        if self.function(a0, b0) >= level:
            return bool(self.chance(np.array([a0]), np.array([b0]))[0] <= risk)
        if self.function(a1, b1) < level:
            return True  # no such shares are credible
        first, last = self._on_curve(np.array([b1, b0]), level, first=True)
        ends = np.linspace(max(a0, first), min(a1, last), _PIECES + 1)
        left, right = ends[:-1], ends[1:]
        for _ in range(_ROUNDS):
            high = self.chance(left, self._on_curve(right, level)) > risk
            if not high.any():
                return True
            left, right = left[high], right[high]
            middle = (left + right) / 2
            if (self.chance(middle, self._on_curve(middle, level)) > risk).any():
                return False
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        return False

    def _on_curve(self, known: Floats, level: float, first: bool = False) -> Floats:
        """The other share where the function is ``level``, from below: a grid, refined thrice."""
        ends = self.box[0 if first else 1]
        low, high = np.full(len(known), ends[0]), np.full(len(known), ends[1])
        for _ in range(3):
            grid = low[:, None] + (high - low)[:, None] * _GRID
            given = np.broadcast_to(known[:, None], grid.shape)
            pair = (grid, given) if first else (given, grid)
            below = (self.function(*pair) < level).sum(1)
            rows = np.arange(len(known))
            low = grid[rows, np.maximum(below - 1, 0)]
            high = grid[rows, np.minimum(below, len(_GRID) - 1)]
        return low  # rounded towards the larger chance


class _Binomial:
    """The binomial laws of ``size`` with shares between two ends, on the counts that matter."""

    def __init__(self, size: int, ends: tuple[float, float]) -> None:
        spread = [_WINDOW * np.sqrt(max(size * p * (1 - p), 4.0)) + 9 for p in ends]
        first = max(0, int(size * ends[0] - spread[0]))
        last = min(size, int(size * ends[1] + spread[1]) + 1)
        self.counts, self.size = np.arange(first, last + 1, dtype=float), size
        others = size - self.counts
        self._ways = gammaln(size + 1) - gammaln(self.counts + 1) - gammaln(others + 1)

    def weights(self, shares: Floats) -> Floats:
        """The weight of each count (columns) at each share (rows)."""
        p = np.clip(shares, 1e-300, 1 - 1e-16)[:, None]
        others = self.size - self.counts
        return np.asarray(np.exp(self._ways + self.counts * np.log(p) + others * np.log1p(-p)))
