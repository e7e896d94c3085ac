"""Precision-recall curves, and curves thinned out to what an eye can see."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.results.curves import Curve, roc_curve, tpr_at

Floats = NDArray[np.float64]


class PrecisionRecall(NamedTuple):
    """Points of the curve from strict to loose, one for each way to cut the scores."""

    recall: Floats
    precision: Floats


def pr_curve(scores: Any, labels: Any) -> PrecisionRecall:
    """The curve of ``scores`` [n] for ``labels`` [n], 0 or 1; equal scores are never split.

    It starts at the strictest cut that accepts anyone: before it precision is 0/0.

    Example:
        >>> pr_curve([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0]).precision.tolist()
        [1.0, 0.666..., 0.5]
    """
    curve = roc_curve(scores, labels)
    y = np.asarray(labels)
    found = curve.tpr[1:] * (y == 1).sum()
    alarms = curve.fpr[1:] * (y == 0).sum()
    return PrecisionRecall(curve.tpr[1:], found / (found + alarms))


def corner(curve: Curve, low: float, high: float, *, log: bool) -> Curve:
    """The part of a ROC curve between two FPRs, with the points where it enters and leaves.

    A million cuts become the few hundred that can be seen, on an even or a logarithmic axis.
    """
    enters, leaves = tpr_at(curve, [low, high])
    inside = (curve.fpr > low) & (curve.fpr < high)
    x = np.concatenate([[low], curve.fpr[inside], [high]])
    y = np.concatenate([[enters], curve.tpr[inside], [leaves]])
    place = np.log(x / low) / np.log(high / low) if log else (x - low) / (high - low)
    kept = thin(place, y)
    return Curve(x[kept], y[kept])


def thin(x: Floats, y: Floats, *, cell: float = 0.003) -> NDArray[np.bool_]:
    """Which points to keep so that none is farther than ``cell`` from a kept one in either way.

    Both coordinates are shares of a picture. The ends and both sides of every jump stay.
    """
    grid = np.stack([np.floor(x / cell), np.floor(y / cell)])
    moved = np.any(np.diff(grid, axis=1) != 0, axis=0)
    ends = np.array([True])
    return np.asarray(np.concatenate([ends, moved]) | np.concatenate([moved, ends]))
