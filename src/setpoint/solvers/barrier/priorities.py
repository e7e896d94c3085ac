"""Lexicographic directions: a loss is made small only where it does not hurt those before it.

As printed, ``v = grad f + u grad g`` with ``push = beta |grad g|^2`` needs multipliers that grow
without bound as the main loss is solved, and a fixed step then overshoots: training stalls where
``u`` meets the stability limit of the main loss. Three changes cure it.

* The direction is divided by ``u`` (at least 1): the same path on another clock, on which the main
  loss keeps its learning rate and the secondary one gets a share ``1 / u``.
* ``u`` grows slowly while the secondary loss still has a way to go, and by a factor once the two
  gradients oppose each other: then the secondary loss is as small as this level of the main loss
  allows, and there is nothing to wait for.
* ``u`` does not jump where the main gradient happens to be tiny, unless the main loss is rising.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.solvers.barrier.directions import Direction, kkt_score, relative_length
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Mask, Solution, Vector, solve

PATIENCE = 0.01
"""Of the descent of the main loss, what is asked for, and of ``beta``, what ``u`` grows by."""
SETTLED = 0.3
"""Length of the direction, relative to the gradient, below which a level counts as solved."""
HASTE = 0.5
"""The share of the main loss's own descent that is then asked for."""
FASTEST = 0.05
"""The largest relative change of ``u`` in a step."""


@dataclass(frozen=True)
class _Level:
    """The multipliers of one level towards those before it, as printed and as used."""

    found: Solution
    used: Vector
    residual: float


def ranked(
    gram: Vector, gaps: Vector, clocks: Vector, calm: Mask, push: Push, *, cap: float
) -> Direction:
    """The direction of the last loss after all others, in order of priority.

    Each level has a direction of its own, made of the gradients up to it; the next level must not
    go against any of them.

    Args:
        gram: Dot products of the gradients, the most important loss first, ``[m + 1, m + 1]``.
        gaps: How far each loss but the last is above its lower bound (infinite if none is known).
        clocks: The largest multiplier of each level in the last step, 0 in the first one, ``[m]``.
        calm: Which losses are not above their running mean, ``[m]``.
        push: What each level asks for.
        cap: As in :func:`solve`.
    """
    count = len(gram)
    directions = np.zeros((count, count))
    directions[0, 0] = 1.0
    pushes = np.zeros(count - 1)
    after = np.zeros(count - 1)
    for i in range(1, count):
        above = directions[:i]
        length = float(np.sqrt(max(above[-1] @ gram @ above[-1], 0.0)))
        pushes[i - 1] = PATIENCE * push(float(gaps[i - 1]), length)
        level = _level(gram, above, pushes[:i], cap)
        used = _limited(level, float(clocks[i - 1]), bool(calm[:i].all()), push.beta)
        after[i - 1] = float(used.max())
        directions[i] = used @ above
        directions[i, i] = 1.0
        directions[i] /= after[i - 1]
    printed = level.found.multipliers @ above
    printed[-1] = 1.0
    return Direction(
        weights=directions[-1],
        multipliers=used,
        printed=level.found.multipliers,
        pushes=pushes,
        score=kkt_score(gram, printed, pushes, np.zeros(count - 1, dtype=bool)),
        residual=level.residual,
        opposed=level.found.opposed,
        clocks=after,
    )


def _level(gram: Vector, above: Vector, pushes: Vector, cap: float) -> _Level:
    """What the levels ``above`` ask of the next gradient, hurried on where it has settled."""
    i = len(above)
    needed = pushes - above @ gram[i]
    found = solve(above @ gram @ above.T, needed, np.zeros(i, dtype=bool), cap=cap)
    weights = found.multipliers @ above
    weights[i] = 1.0
    residual = relative_length(gram[: i + 1, : i + 1], weights[: i + 1])
    used = found.multipliers / (1 - HASTE * _settled(residual))
    used[-1] = max(used[-1], 1.0)  # the main loss keeps its learning rate
    return _Level(found, used, residual)


def _limited(level: _Level, before: float, calm: bool, beta: float) -> Vector:
    """The multipliers, near those of the last step."""
    used, top = level.used, float(level.used.max())
    if before == 0:
        return used
    most = before * (1 + FASTEST * _settled(level.residual))
    most = max(most, before + PATIENCE * beta) if calm else np.inf
    least = before * (1 - FASTEST)
    if top > most:
        used = used * (most / top)
    elif top < least:
        used[-1] = least
    return used


def _settled(residual: float) -> float:
    """From 0, where a level is still on its way, to 1, where it is solved."""
    return max(0.0, 1 - (residual / SETTLED) ** 2)
