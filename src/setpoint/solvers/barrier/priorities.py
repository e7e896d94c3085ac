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

import numpy as np

from setpoint.solvers.barrier.directions import Direction, kkt_score, relative_length
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Solution, Vector, solve

SETTLED = 0.1
"""Length of the direction, relative to the gradient, below which a level counts as solved."""
HASTE = 0.5
"""The share of the main loss's own descent that is then asked for."""


def ranked(gram: Vector, gaps: Vector, push: Push, *, cap: float) -> Direction:
    """The direction of the last loss after all others, in order of priority.

    Each level has a direction of its own, made of the gradients up to it; the next level must not
    go against any of them.

    Args:
        gram: Dot products of the gradients, the most important loss first, ``[m + 1, m + 1]``.
        gaps: How far each loss but the last is above its lower bound (infinite if none is known).
        push: What each level asks for.
        cap: As in :func:`solve`.
    """
    count = len(gram)
    directions = np.zeros((count, count))
    directions[0, 0] = 1.0
    pushes = np.zeros(count - 1)
    for level in range(1, count):
        above = directions[:level]
        among = above @ gram @ above.T
        length = float(np.sqrt(max(among[-1, -1], 0.0)))
        pushes[level - 1] = push(float(gaps[level - 1]), length)
        needed = pushes[:level] - above @ gram[level]
        found = solve(among, needed, np.zeros(level, dtype=bool), cap=cap)
        weights = found.multipliers @ above
        weights[level] = 1.0
        residual = relative_length(gram[: level + 1, : level + 1], weights[: level + 1])
        hurry = 1 - HASTE * max(0.0, 1 - (residual / SETTLED) ** 2)
        multipliers = found.multipliers / hurry
        directions[level] = multipliers @ above
        directions[level, level] = 1.0
        directions[level] /= max(1.0, float(multipliers.max()))
    return _described(gram, directions[-1], weights, multipliers, pushes, residual, found)


def _described(
    gram: Vector,
    direction: Vector,
    printed: Vector,
    multipliers: Vector,
    pushes: Vector,
    residual: float,
    found: Solution,
) -> Direction:
    none = np.zeros(len(pushes), dtype=bool)
    return Direction(
        weights=direction,
        multipliers=multipliers,
        printed=found.multipliers,
        pushes=pushes,
        score=kkt_score(gram, printed, pushes, none),
        residual=residual,
        opposed=found.opposed,
    )
