"""Minibatches: hold the bound on average, although every batch's gradient is too long.

The squared length of a batch's gradient is that of the true gradient plus noise, so the printed
multiplier is too small and training settles outside the bound. An integral term finds what is
missing: the bound is tightened by a ``shift`` that grows while the loss stays above its level, and
shrinks to zero while it stays below.
"""

from __future__ import annotations

import numpy as np

from setpoint.solvers.barrier.quadratic import Mask, Vector


def shifted(shift: Vector, gaps: Vector, free: Mask, gain: float) -> Vector:
    """The shift after one more batch with these ``gaps``."""
    moved = shift + gain * gaps
    return np.where(free, moved, np.maximum(moved, 0.0))
