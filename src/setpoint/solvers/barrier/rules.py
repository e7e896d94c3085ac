"""Rules: from the gradients of one step to a weight for every loss.

A rule is one object with the methods of :class:`DirectionRule`. :class:`KeepBounds` is the dynamic
barrier of the paper (eq. 6 to 8); :class:`setpoint.solvers.barrier.lexicographic.Lexicographic`
ranks losses by priority. To add a rule, write such an object and let ``Barrier._rule`` choose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from setpoint._checks import at_least_zero, number, positive
from setpoint.solvers.barrier.constraints import Losses
from setpoint.solvers.barrier.gradients import LossGradients
from setpoint.solvers.barrier.kkt import kkt_score, relative_length
from setpoint.solvers.barrier.quadratic_program import Mask, Vector, solve_multipliers
from setpoint.solvers.barrier.state import BarrierState, Direction

ARRIVED = 0.1
"""The objective has arrived where this part of its gradient, or less, could still be followed."""
_JUMPS = 3.0
"""A gap counts up to this many standard deviations of the batch noise."""
HIGHEST = 30.0
"""The largest floor of a multiplier, in units of the ratio of gradient lengths."""


@dataclass(frozen=True)
class Push:
    """``phi = min(alpha * gap, beta * |grad g|^tau)``, where a positive gap is a broken bound.

    The dynamic barrier function of the paper's eq. (8) and Proposition 3.7.

    Args:
        alpha: How fast a broken bound is mended: the gap shrinks like ``exp(-alpha * time)``, where
            a step of plain gradient descent takes as much time as its learning rate.
        beta: The largest push, in units of the steepest descent of the loss itself.
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
            length: The length of the gradient of the loss.
            both_ways: For an equality: a negative gap is mended as hard as a positive one.
        """
        cap = self.beta * length**self.tau if length > 0 else 0.0
        mend = self.alpha * gap if gap != inf else inf
        return min(max(mend, -cap), cap) if both_ways else min(mend, cap)


class DirectionRule(Protocol):
    """Finds the weights of the losses of each step."""

    def observe(self, state: BarrierState, losses: Losses, gaps: Vector, push: Push) -> None:
        """Update the rule's part of the state, at every step, before weights are found."""

    def direction(
        self, state: BarrierState, step: LossGradients, gaps: Vector, push: Push
    ) -> Direction:
        """Weights from the gradients of this step; not called where weights are used again."""

    def scales(self, state: BarrierState, parameters: int) -> Vector:
        """A factor for each parameter's part of the direction, ``[parameters]``."""


class Printed:
    """Algorithm 1 as it stands, for bounds and for orders of importance, on each batch alone.

    Args:
        cap: How much bounds that oppose each other may amplify their multipliers.
    """

    def __init__(self, *, cap: float) -> None:
        self.cap = positive(cap, "cap")

    def observe(self, state: BarrierState, losses: Losses, gaps: Vector, push: Push) -> None:
        """Nothing to update."""

    def direction(
        self, state: BarrierState, step: LossGradients, gaps: Vector, push: Push
    ) -> Direction:
        """Eq. (4) and (8); without a lower bound a loss asks for ``beta |grad g|^2``."""
        return constrained(
            step.gram, gaps, step.losses.free, np.zeros(len(gaps)), push, cap=self.cap
        )

    def scales(self, state: BarrierState, parameters: int) -> Vector:
        """1 for all parameters."""
        return np.ones(parameters)


class KeepBounds(Printed):
    """Minimize the objective subject to bounds (eq. 6, several constraints).

    Args:
        gain: The pace of the noise correction (:func:`raise_floors`); 0 for exact gradients.
        cap: How much bounds that oppose each other may amplify their multipliers.
    """

    def __init__(self, *, gain: float, cap: float) -> None:
        super().__init__(cap=cap)
        self.gain = at_least_zero(gain, "gain")

    def observe(self, state: BarrierState, losses: Losses, gaps: Vector, push: Push) -> None:
        """Raise the floors of the multipliers."""
        state.numbers["floor"] = raise_floors(
            state, gaps, losses.free, alpha=push.alpha, gain=self.gain
        )

    def direction(
        self, state: BarrierState, step: LossGradients, gaps: Vector, push: Push
    ) -> Direction:
        """The quadratic program on the Gram matrix of this step, above the floors."""
        floors = state.numbers["floor"]
        return constrained(step.gram, gaps, step.losses.free, floors, push, cap=self.cap)


def constrained(
    gram: Vector, gaps: Vector, free: Mask, floors: Vector, push: Push, *, cap: float
) -> Direction:
    """The direction closest to ``grad f`` (plus floors) that mends every bound fast enough.

    Args:
        gram: Dot products of the gradients of all gaps, then the objective, ``[m + 1, m + 1]``.
        gaps: By how much each bound is broken, ``[m]``.
        free: Which bounds are equalities, ``[m]``.
        floors: The least value of each multiplier, from the noise correction, ``[m]``.
        push: What a gap asks for.
        cap: As in :func:`setpoint.solvers.barrier.quadratic_program.solve_multipliers`.
    """
    m = len(gaps)
    among, pull, squares = gram[:m, :m], gram[:m, m], np.diagonal(gram)[:m]
    pushes = np.array(
        [
            push(float(gap), float(square) ** 0.5, both_ways=bool(both))
            for gap, square, both in zip(gaps, squares, free, strict=True)
        ]
    )
    found = printed = solve_multipliers(among, pushes - pull, free, cap=cap)
    multipliers = found.multipliers
    if floors.any():
        under = np.where(free, 0.0, floors)  # an equality has no sign to keep: its push is raised
        asked = pushes + np.where(free, floors * squares, 0.0)
        found = solve_multipliers(among, asked - pull - among @ under, free, cap=cap)
        multipliers = found.multipliers + under
    weights = np.append(multipliers, 1.0)
    residual = relative_length(gram, weights)
    return Direction(
        weights=weights,
        multipliers=multipliers,
        printed=printed.multipliers,
        pushes=pushes,
        score=kkt_score(gram, weights, pushes, free),
        residual=residual,
        opposed=found.opposed,
        binds=multipliers != 0,
        arrived=residual <= ARRIVED,
    )


def raise_floors(
    state: BarrierState, gaps: Vector, free: Mask, *, alpha: float, gain: float
) -> Vector:
    """The floors of the multipliers after one more minibatch.

    The squared length of a batch's gradient is that of the true gradient plus noise, so the
    multiplier of eq. (4) is too small, and training settles where bounds are broken. The floor of
    a multiplier makes up for it: it rises while the loss stays above its level and falls back to
    zero while it stays below. Where gradients are exact the multiplier is above its floor, and
    nothing changes. All factors of the gap come from earlier batches, so the rise is unbiased: its
    mean over the batches of a data set is the rise for the gap of the whole.

    Args:
        state: Running means of earlier batches.
        gaps: By how much each bound is broken on this batch.
        free: Which bounds are equalities: their floor may have either sign.
        alpha: As in :class:`Push`: the floor rises like ``gain`` times the multiplier of the push.
        gain: That factor.
    """
    floors = state.numbers["floor"]
    squares = state.numbers["mean_square"]
    if gain == 0 or state.count("steps") < 2 or not squares.any():
        return floors
    squares = np.where(squares > 0, squares, np.inf)
    mean = np.abs(state.numbers["mean_gap"])
    noise = _JUMPS * np.sqrt(state.numbers["mean_jump"] / 2)
    share = np.where(mean > noise, noise / np.where(mean > 0, mean, 1.0), 1.0)
    share = np.where(gaps * floors < 0, 1.0, share)  # a floor that is too high may always fall
    limit = HIGHEST * np.sqrt(float(state.numbers["mean_pull"]) / squares)
    moved = floors + gain * alpha * share * gaps / squares
    risen: Vector = np.clip(moved, np.where(free, -limit, 0.0), limit)
    return risen
