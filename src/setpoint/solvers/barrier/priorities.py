"""Lexicographic directions: a loss is made small only where it does not hurt those before it.

As printed, ``v = grad f + u grad g`` with ``push = beta |grad g|^2`` needs multipliers that grow
without bound as the main loss is solved, and a fixed step then overshoots: training stalls where
``u`` meets the stability limit of the main loss. Two changes cure it. The direction is divided by
``max(1, u)``: the same path on another clock, on which the main loss keeps its learning rate and
the secondary one gets a share ``1 / u``. And where the two gradients oppose each other, which says
that the secondary loss is already as small as this level of the main loss allows, the multiplier
grows by a factor instead of by a constant: there is nothing to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Vector, solve

SETTLED = 0.01
"""Squared length of the direction, relative to the gradient, below which a level is solved."""
HASTE = 0.5
"""The share of the main loss's own descent that is then asked for."""


@dataclass(frozen=True)
class Ranked:
    """Weights of the losses (most important first), and what the last level found."""

    weights: Vector
    multipliers: Vector
    pushes: Vector
    residual: float
    opposed: bool


def ranked(gram: Vector, gaps: Vector, push: Push, *, cap: float) -> Ranked:
    """The direction of the last loss after all others, in order of priority.

    Args:
        gram: Dot products of the gradients, the most important loss first, ``[k, k]``.
        gaps: How far each loss but the last is above its lower bound (infinite if none is known).
        push: What each level asks for.
        cap: As in :func:`solve`.
    """
    k = len(gram)
    directions = np.zeros((k, k))
    directions[0, 0] = 1.0
    pushes = np.zeros(k - 1)
    opposed = False
    for level in range(1, k):
        rows = directions[:level]
        among = rows @ gram @ rows.T
        length = float(np.sqrt(max(among[-1, -1], 0.0)))
        pushes[level - 1] = push(float(gaps[level - 1]), length)
        needed = pushes[:level] - rows @ gram[level]
        found = solve(among, needed, np.zeros(level, dtype=bool), cap=cap)
        opposed = opposed or found.opposed
        multipliers = found.multipliers
        residual = _residual(gram, rows, multipliers, level)
        multipliers = multipliers / (1 - HASTE * max(0.0, 1 - residual / SETTLED))
        directions[level] = multipliers @ rows
        directions[level, level] = 1.0
        directions[level] /= max(1.0, float(multipliers.max()))
    return Ranked(directions[-1], multipliers, pushes, residual, opposed)


def _residual(gram: Vector, rows: Vector, multipliers: Vector, level: int) -> float:
    """``|v|^2 / |grad|^2`` of the direction as printed: 0 where the level is solved."""
    direction = multipliers @ rows
    direction[level] += 1.0
    own = float(gram[level, level])
    return float(direction @ gram @ direction) / own if own > 0 else 1.0
