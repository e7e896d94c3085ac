"""Hold thresholds while the scores move: the implicit function theorem, solved once for all axes.

Thresholds ``t`` keep some rates ``E(scores, t)`` at their present level. When the scores move, the
thresholds follow, and the gradient of an objective ``f(scores, t(scores))`` on the scores is that
of ``f + m . E`` at fixed thresholds, where the multipliers ``m`` solve ``df/dt + m dE/dt = 0``
(ICO, equations 3 to 6). One threshold for everyone is a stack of 1 x 1 systems (one per output and
operating point), so is one threshold per query; groups and classes are one coupled system.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from setpoint.rates import Array

SINGULAR = 1e-9
"""Singular values below this share of the largest count as zero."""


class Soft(Protocol):
    """Soft counts around thresholds; ``k`` counts and ``t`` thresholds per system."""

    def by_threshold(self, by_count: Array) -> Array:
        """A derivative by the thresholds, ``[..., t]``, from that by the counts, ``[..., k]``."""

    def pull(self, by_count: Array) -> Array:
        """The gradient on the scores from that by the counts."""


class Anchors(Protocol):
    """What the thresholds of each system keep: ``e`` rates."""

    @property
    def slopes(self) -> Array:
        """How what is kept changes with the thresholds, ``[..., e, t]``."""

    def total(self, multipliers: Array, towards: Array) -> Array:
        """``m . E`` by the counts, ``[..., k]``, from the multipliers and ``df/dt``."""


class Held(NamedTuple):
    """An objective at held thresholds.

    Attributes:
        gradient: On the scores.
        multipliers: One per rate that is kept, ``[..., e]``.
        towards: The objective's slope by the thresholds, ``[..., t]``.
        flat: Whether a threshold keeps a rate that no score near it can change.
    """

    gradient: Array
    multipliers: Array
    towards: Array
    flat: bool


def hold(soft: Soft, anchors: Anchors, goal: Array, floor: Array | None = None) -> Held:
    """The gradient of an objective on the scores while the thresholds keep their anchors.

    Args:
        soft: Counts around the thresholds.
        anchors: What the thresholds keep.
        goal: How what is to be minimized changes with each count, ``[..., k]``.
        floor: Smallest ``|slope|`` to divide by, in systems of one threshold.
    """
    towards = soft.by_threshold(goal)
    multipliers, flat = solve(towards, anchors.slopes, floor)
    gradient = soft.pull(goal + anchors.total(multipliers, towards))
    return Held(gradient, multipliers, towards, flat)


def solve(goal: Array, held: Array, floor: Array | None = None) -> tuple[Array, bool]:
    """Multipliers ``[..., e]`` with ``goal + m @ held = 0``, and whether a system is singular.

    In the sense of least squares, where there are fewer rates ``e`` than thresholds ``t``; of
    several solutions the shortest.

    Args:
        goal: The slopes of the objective by the thresholds, ``[..., t]``.
        held: The slopes of the rates that are kept, ``[..., e, t]``.
        floor: Smallest ``|slope|`` to divide by, in systems of one threshold.
    """
    if held.shape[-2:] == (1, 1):
        slope = held[..., 0]
        if floor is not None:
            slope = np.where(abs(slope) < floor, floor * np.sign(slope), slope)
        if slope.all():
            return -goal / slope, False
        flat = slope == 0  # nothing near the threshold: it does not move
        return np.where(flat, 0.0, -goal / np.where(flat, 1.0, slope)), True
    if not held.size or not (np.isfinite(held).all() and np.isfinite(goal).all()):
        return np.zeros(held.shape[:-1]), not np.isfinite(goal).all()
    lengths = np.sqrt((held**2).sum(-1))
    there = lengths > 0
    rows = held / np.where(there, lengths, 1.0)[..., None]
    u, sizes, vt = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > SINGULAR * sizes.max(initial=0.0)
    inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=kept)
    found = -(u * inverse) @ (vt @ goal)
    return found / np.where(there, lengths, np.inf), not (kept.all() and there.all())
