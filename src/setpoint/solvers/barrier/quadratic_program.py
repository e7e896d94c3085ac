"""The smallest change of direction that keeps every bound: a quadratic program in m multipliers.

``min |grad f - v|^2`` subject to ``grad g_i . v >= push_i`` has ``v = grad f + sum_i u_i grad g_i``
with multipliers that minimize ``u' G u / 2 - u' needed``, where ``G`` is the Gram matrix of the
constraints' gradients and ``needed = push - grad g . grad f``. Only ``m`` by ``m`` numbers are
touched, however large the model is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TOLERANCE = 1e-11
"""How closely a bound must be kept, relative to the largest need."""
_RIDGES = (0.0, 1e-13, 1e-12)
"""Added to the scaled Gram matrix, which has a unit diagonal; more than 0 for dependent rows."""


@dataclass(frozen=True)
class Solution:
    """Multipliers, and whether the bounds oppose each other (then they are the least broken)."""

    multipliers: Vector
    opposed: bool = False


def solve_multipliers(gram: Vector, needed: Vector, free: Mask, *, cap: float = 1e4) -> Solution:
    """The multipliers: at least zero, or of either sign where ``free`` (equalities).

    Args:
        gram: Dot products of the constraints' gradients, ``[m, m]``.
        needed: What each bound still asks for, ``[m]``.
        free: Which bounds are equalities, ``[m]``.
        cap: How many times the largest need a multiplier may be, both in units where gradients have
            length one. Where the bounds leave no room below it they count as opposed, and the
            squares of what is missing plus ``1 / cap`` of the squared change are minimized instead.
    """
    lengths = np.sqrt(np.diagonal(gram))
    if len(needed) == 1:  # eq. (4)
        length = float(lengths[0])
        alone = float(needed[0]) / length**2 if length > 0 else 0.0
        return Solution(np.array([alone if free[0] else max(alone, 0.0)]))
    flat = lengths == 0
    units = np.where(flat, 1.0, lengths)
    scaled = gram / np.outer(units, units)
    wanted = np.where(flat, 0.0, needed / units)
    size = float(np.abs(wanted).max())
    if size == 0:
        return Solution(np.zeros(len(needed)))
    wanted = wanted / size
    scaled[flat, flat] = 1.0
    for ridge in _RIDGES:
        found = _pivot(scaled, wanted, free, ridge)
        if (
            found is not None
            and np.abs(found).max() <= cap
            and _all_kept(scaled, wanted, free, found)
        ):
            return Solution(found * size / units)
    least = _pivot(scaled, wanted, free, 1 / cap)
    return Solution((np.zeros_like(wanted) if least is None else least) * size / units, True)


def _all_kept(scaled: Vector, wanted: Vector, free: Mask, found: Vector) -> bool:
    """Whether every bound is kept."""
    over = scaled @ found - wanted
    missing = np.where(free, np.abs(over), -over)
    return bool((missing <= _TOLERANCE * (1 + np.abs(found).max())).all())


def _pivot(scaled: Vector, wanted: Vector, free: Mask, ridge: float) -> Vector | None:
    """Block principal pivoting: guess which bounds bind, solve, move all wrong guesses at once.

    If that makes no progress three times, only the last wrong guess is moved (Murty's rule, which
    ends for any positive definite matrix).
    """
    m = len(wanted)
    matrix = scaled + ridge * np.eye(m)
    binds = free | (wanted > 0)
    fewest, patience = m + 1, 3
    for _ in range(10 * m + 20):
        found = np.zeros(m)
        index = np.flatnonzero(binds)
        if len(index):
            try:
                found[index] = np.linalg.solve(matrix[np.ix_(index, index)], wanted[index])
            except np.linalg.LinAlgError:
                return None
        over = matrix @ found - wanted
        over[index] = 0.0
        wrong = np.where(binds, (found < 0) & ~free, over < -_TOLERANCE)
        count = int(wrong.sum())
        if count == 0:
            return found
        if count < fewest:
            fewest, patience = count, 3
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        binds = binds ^ wrong
    return None
