"""Shifts that give every class its share: the dual of a transport problem.

Send every example to a class, so many to each, so that the scores add up to as much as possible.
The prices of the classes in that problem are the shifts: ``argmax(score - shift)`` is the best
plan. Smoothed by a softmax the dual is convex in K variables and Newton's method solves it in a few
steps; single examples are then moved until the counts are those wanted.
"""

from __future__ import annotations

import numpy as np

from setpoint.problems.classes.data import Floats, Whole
from setpoint.problems.classes.moves import finish

WIDTHS = (0.25, 0.02)
"""Of the softmax, in units of the spread: first to come near, then near enough."""
NEWTON_STEPS = 30
ENOUGH = 1e-3
"""Newton stops when no count is off by more than this share of one example."""


def transport(scores: Floats, quotas: Floats, weights: Floats) -> Whole:
    """The class of each example, ``[n]``, such that class ``i`` has a weight of ``quotas[i]``.

    With weights of 1 and whole quotas that add up to n the counts are exact. Otherwise no single
    move, nor chain of moves, along a shortest path brings them closer.
    """
    used = np.flatnonzero(quotas > 0)
    if len(used) < 2 or not len(scores):
        return np.full(len(scores), used[0] if len(used) else 0)
    few = scores[:, used]
    shifts = _smooth(few, quotas[used], weights)
    return used[finish(few, shifts, quotas[used], weights)]


def _smooth(scores: Floats, quotas: Floats, weights: Floats) -> Floats:
    """The shifts with which a softmax has the right totals."""
    centred = scores - scores.mean(1, keepdims=True)
    spread = float(np.sqrt(((centred - centred.mean(0)) ** 2).mean())) or 1.0
    shifts = np.average(centred, axis=0, weights=weights)
    shares = quotas / quotas.sum() * weights.sum()
    for width in WIDTHS:
        shifts = _newton(centred, shifts, shares, weights, width * spread)
    return shifts


def _newton(
    scores: Floats, shifts: Floats, quotas: Floats, weights: Floats, width: float
) -> Floats:
    """Minimize ``sum w h log sum exp((s - t) / h) + quotas . t``, which is convex in the shifts."""
    value, p = _dual(scores, shifts, quotas, weights, width)
    for _ in range(NEWTON_STEPS):
        taken = weights @ p
        slope = quotas - taken
        if np.abs(slope).max() <= ENOUGH * weights.max():
            break
        hessian = np.diag(taken) - (p * weights[:, None]).T @ p
        hessian += np.eye(len(shifts)) * 1e-12 * taken.max() + taken.mean() / len(shifts)  # gauge
        step = -width * np.linalg.solve(hessian, slope)
        step -= step.mean()
        length, gain = 1.0, float(slope @ step)
        for _ in range(30):
            found, q = _dual(scores, shifts + length * step, quotas, weights, width)
            if found <= value + 1e-4 * length * gain:
                break
            length /= 2
        else:
            break
        shifts, value, p = shifts + length * step, found, q
    return shifts


def _dual(
    scores: Floats, shifts: Floats, quotas: Floats, weights: Floats, width: float
) -> tuple[float, Floats]:
    z = (scores - shifts) / width
    top = z.max(1, keepdims=True)
    powers = np.exp(z - top)
    total = powers.sum(1, keepdims=True)
    value = width * float(weights @ (np.log(total) + top)[:, 0]) + float(quotas @ shifts)
    return value, powers / total
