"""How hard a bound pushes: the dynamic barrier of the paper's eq. (8) and Proposition 3.7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import at_least_zero, number, positive

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
TOLERANCE = 1e-11
"""Of a bound, relative to the largest need: what counts as kept."""
RIDGES = (0.0, 1e-13, 1e-12)
"""Added to the scaled Gram matrix, which has a unit diagonal; more than 0 for dependent rows."""


@dataclass(frozen=True)
class Push:
    """``min(alpha * gap, beta * |grad g|^tau)``, for gaps that are positive where broken.

    Args:
        alpha: How fast a broken bound is mended: the gap shrinks like ``exp(-alpha * time)``, where
            a step of plain gradient descent takes as much time as its learning rate.
        beta: The most that is asked for, in units of the steepest descent of the loss itself.
        tau: The power of the gradient's length in it, at least 1; 2 in the paper's eq. (8).
    """

    alpha: float = 1.0
    beta: float = 1.0
    tau: float = 2.0

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")
        at_least_zero(self.beta, "beta")
        if number(self.tau, "tau") < 1:
            raise ValueError(f"tau must be at least 1 (Proposition 3.7); got {self.tau:g}.")

    def __call__(self, gap: float, length: float, *, both_ways: bool = False) -> float:
        """The least decrease of the loss that is asked for, per unit of time.

        Args:
            gap: By how much the bound is broken; infinite when there is no threshold, only a loss
                to be made as small as possible.
            length: Of the gradient of the loss.
            both_ways: For an equality: a negative gap is mended as hard as a positive one.
        """
        cap = self.beta * length**self.tau if length > 0 else 0.0
        mend = self.alpha * gap if gap != inf else inf
        return min(max(mend, -cap), cap) if both_ways else min(mend, cap)


@dataclass(frozen=True)
class Solution:
    """Multipliers, and whether the bounds oppose each other (then they are the least broken)."""

    multipliers: Vector
    opposed: bool = False


def solve(gram: Vector, needed: Vector, free: Mask, *, cap: float = 1e4) -> Solution:
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
    for ridge in RIDGES:
        found = _pivot(scaled, wanted, free, ridge)
        if found is not None and np.abs(found).max() <= cap and _kept(scaled, wanted, free, found):
            return Solution(found * size / units)
    least = _pivot(scaled, wanted, free, 1 / cap)
    return Solution((np.zeros_like(wanted) if least is None else least) * size / units, True)


def _kept(scaled: Vector, wanted: Vector, free: Mask, found: Vector) -> bool:
    """Whether every bound is kept."""
    over = scaled @ found - wanted
    missing = np.where(free, np.abs(over), -over)
    return bool((missing <= TOLERANCE * (1 + np.abs(found).max())).all())


def _pivot(scaled: Vector, wanted: Vector, free: Mask, ridge: float) -> Vector | None:
    """Block principal pivoting: guess who binds, solve, move all wrong guesses at once.

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
        wrong = np.where(binds, (found < 0) & ~free, over < -TOLERANCE)
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
