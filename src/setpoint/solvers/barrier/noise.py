"""Minibatches: hold bounds on average, although every batch's gradient is too long.

The squared length of a batch's gradient is that of the true gradient plus noise, so the printed
multiplier is too small, and training settles where bounds are broken. What is missing is learnt: a
floor under each multiplier rises while the loss stays above its level and falls back to zero while
it stays below. Where gradients are exact the printed multiplier is above its floor, and nothing
changes.
"""

from __future__ import annotations

import numpy as np

from setpoint.solvers.barrier.ledger import Ledger
from setpoint.solvers.barrier.quadratic import Mask, Vector

JUMPS = 3.0
"""Gaps count up to so many deviations of the batch noise: a long way home is not noise."""
HIGHEST = 30.0
"""Floors end at so many times the ratio of gradient lengths, where noise cannot be beaten."""


def raise_floors(ledger: Ledger, gaps: Vector, free: Mask, *, alpha: float, gain: float) -> Vector:
    """The floors after one more batch.

    All factors of the gap come from earlier batches, so the rise is unbiased: its mean over the
    batches of a data set is the rise for the gap of the whole.

    Args:
        ledger: Running numbers of earlier batches.
        gaps: By how much each bound is broken on this batch.
        free: Which are equalities: their term may have either sign.
        alpha: Of the push: the floor rises like ``gain`` times the multiplier of the push.
        gain: The share of it in each step.
    """
    floors = ledger.numbers["floor"]
    squares = ledger.numbers["mean_square"]
    if gain == 0 or ledger.count("steps") < 2 or not squares.any():
        return floors
    squares = np.where(squares > 0, squares, np.inf)
    mean = np.abs(ledger.numbers["mean_gap"])
    noise = JUMPS * np.sqrt(ledger.numbers["mean_jump"] / 2)
    share = np.where(mean > noise, noise / np.where(mean > 0, mean, 1.0), 1.0)
    share = np.where(gaps * floors < 0, 1.0, share)  # what is too much may always fade
    limit = HIGHEST * np.sqrt(float(ledger.numbers["mean_pull"]) / squares)
    moved = floors + gain * alpha * share * gaps / squares
    risen: Vector = np.clip(moved, np.where(free, -limit, 0.0), limit)
    return risen


def follow_noise(ledger: Ledger, gaps: Vector) -> None:
    """Take in the gaps of a step."""
    if ledger.count("steps") > 0:
        jumps = (gaps - ledger.numbers["gap"]) ** 2
        mean = ledger.numbers["mean_jump"]
        pace = max(ledger.pace(), 1 / ledger.count("steps"))
        ledger.numbers["mean_jump"] = mean + pace * (jumps - mean)
    ledger.follow("mean_gap", gaps)
    ledger.numbers["gap"] = gaps
