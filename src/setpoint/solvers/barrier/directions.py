"""From dot products to weights: the direction that keeps bounds (eq. 6, several constraints)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Mask, Vector, solve


@dataclass(frozen=True)
class Direction:
    """``sum_i weights[i] * gradient[i]``, the objective last, and how it came about.

    Attributes:
        weights: Of all losses, the objective last, ``[m + 1]``.
        multipliers: Of the bounds, ``[m]``.
        printed: The multipliers without the noise correction, ``[m]``.
        pushes: What each bound asked for (eq. 8), ``[m]``.
        score: The KKT score (eq. 9) with ``nu = 1``.
        residual: ``|v| / |grad f|``: 0 where nothing is left to do; in lexicographic training the
            residual of eq. (16) to first order.
        opposed: Whether no direction keeps all bounds.
        binds: Which bounds matter in this step, ``[m]``.
        learnt: In lexicographic training, what the ledger is to remember of this step.
    """

    weights: Vector
    multipliers: Vector
    printed: Vector
    pushes: Vector
    score: float
    residual: float
    opposed: bool
    binds: Mask
    learnt: Mapping[str, Vector] = field(default_factory=dict)


def constrained(
    gram: Vector, gaps: Vector, free: Mask, floors: Vector, push: Push, *, cap: float
) -> Direction:
    """The direction closest to ``grad f`` (plus floors) that mends every bound fast enough.

    Args:
        gram: Dot products of the gradients of all gaps, then the objective, ``[m + 1, m + 1]``.
        gaps: By how much each bound is broken, ``[m]``.
        free: Which bounds are equalities, ``[m]``.
        floors: What the noise correction asks of each multiplier, ``[m]``.
        push: What a gap asks for.
        cap: As in :func:`solve`.
    """
    m = len(gaps)
    among, pull, squares = gram[:m, :m], gram[:m, m], np.diagonal(gram)[:m]
    pushes = np.array(
        [
            push(float(gap), float(square) ** 0.5, both_ways=bool(both))
            for gap, square, both in zip(gaps, squares, free, strict=True)
        ]
    )
    found = printed = solve(among, pushes - pull, free, cap=cap)
    multipliers = found.multipliers
    if floors.any():
        under = np.where(free, 0.0, floors)  # an equality has no sign to keep: its push is raised
        asked = pushes + np.where(free, floors * squares, 0.0)
        found = solve(among, asked - pull - among @ under, free, cap=cap)
        multipliers = found.multipliers + under
    weights = np.append(multipliers, 1.0)
    return Direction(
        weights=weights,
        multipliers=multipliers,
        printed=printed.multipliers,
        pushes=pushes,
        score=kkt_score(gram, weights, pushes, free),
        residual=relative_length(gram, weights),
        opposed=found.opposed,
        binds=multipliers != 0,
    )


def kkt_score(gram: Vector, weights: Vector, pushes: Vector, free: Mask) -> float:
    """Eq. (9), summed over bounds: zero at a KKT point and only there."""
    broken = np.where(free, np.abs(pushes), np.maximum(pushes, 0.0))
    slack = np.where(free, 0.0, np.maximum(-pushes, 0.0))
    return float(weights @ gram @ weights + broken.sum() + weights[:-1] @ slack)


def relative_length(gram: Vector, weights: Vector) -> float:
    """``|v| / |grad f|``, where the last gradient is that of f."""
    own = float(gram[-1, -1])
    return float(np.sqrt(max(float(weights @ gram @ weights), 0.0) / own)) if own > 0 else 0.0
