"""Shrink a mixture of many iterates to a few, by two small linear programs.

A vertex of a program with one row for each target and one for "probabilities add up to one" has at
most that many iterates in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]


def shrink(costs: Floats, excess: Floats) -> Floats:
    """Probabilities ``[n]`` of the least mean cost among those that break targets least.

    Args:
        costs: What each iterate costs, ``[n]``.
        excess: By how much each exceeds each target, ``[targets, n]``; negative: with room.
    """
    ones = np.ones((1, len(costs)))
    if not len(excess):
        return _solved(costs, None, None, ones)
    largest = np.hstack([excess, -np.ones((len(excess), 1))])  # excess @ p - violation <= 0
    price = np.append(np.zeros(len(costs)), 1.0)
    violation = _solved(price, largest, np.zeros(len(excess)), np.append(ones, [[0.0]], 1))[-1]
    limits = np.full(len(excess), violation + 1e-12 * max(1.0, abs(excess).max()))
    return _solved(costs, excess, limits, ones)


def _solved(costs: Floats, rows: Floats | None, limits: Floats | None, mass: Floats) -> Floats:
    """A vertex: simplex, not an interior point, which would use every iterate a little."""
    found: Any = linprog(costs, A_ub=rows, b_ub=limits, A_eq=mass, b_eq=[1.0], method="highs-ds")
    shares: Floats = np.maximum(found.x, 0.0)
    return shares
