"""What the plots show: ROC and precision-recall curves, histograms of scores, training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint._checks import is_number
from setpoint.axes.arrays import Floats, Ints
from setpoint.batch import check_labels, check_scores, describe

_SAME_COUNT = 1e-9
"""Rates closer than this are the same count of examples, whatever floats make of them."""


class Curve(NamedTuple):
    """Points of a ROC curve from (0, 0) to (1, 1), one per distinct score."""

    fpr: Floats
    tpr: Floats


def roc_curve(scores: Any, labels: Any) -> Curve:
    """The curve of ``scores`` [n] for ``labels`` [n], 0 or 1; equal scores are never split.

    Examples:
        >>> roc_curve([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0]).tpr.tolist()
        [0.0, 0.5, 1.0, 1.0]
    """
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    check_scores(s)
    check_labels(y, s)
    positives = int((y == 1).sum())
    if positives in (0, y.size):
        counted = describe(positives, y.size - positives)
        raise ValueError(f"A ROC curve needs examples of both classes; got {counted}.")
    order = np.argsort(-s, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(s[order])), s.size - 1)  # last of each tied block
    found = np.cumsum(y[order] == 1)[ends]
    alarms = ends + 1 - found
    return Curve(
        np.concatenate([[0.0], alarms / (y.size - positives)]),
        np.concatenate([[0.0], found / positives]),
    )


def tpr_at(curve: Curve, levels: ArrayLike) -> Floats:
    """The highest TPR with an FPR of at most each of ``levels``: what ``fnr_at_fpr`` reports."""
    reached = np.searchsorted(curve.fpr, np.asarray(levels) + _SAME_COUNT, side="right")
    return curve.tpr[reached - 1]


def mean_curve(curves: Sequence[Curve], levels: ArrayLike) -> Curve:
    """The mean over several curves of the TPR at each of ``levels``."""
    if not curves:
        raise ValueError("A mean needs at least one curve.")
    x = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    return Curve(x, np.mean([tpr_at(curve, x) for curve in curves], axis=0))


class PrecisionRecall(NamedTuple):
    """Points of the curve from strict to loose, one per distinct score."""

    recall: Floats
    precision: Floats


def pr_curve(scores: Any, labels: Any) -> PrecisionRecall:
    """The curve of ``scores`` [n] for ``labels`` [n], 0 or 1; equal scores are never split.

    It starts at the strictest cut that accepts anyone: before it precision is 0/0.

    Examples:
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

    Points that lie too close to be seen, on an even or a logarithmic axis, are left out.
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


@dataclass(frozen=True)
class Histogram:
    """Counts of both classes in equal bins; ``largest_tie`` is the share of one single value."""

    edges: Floats
    positives: Ints
    negatives: Ints
    distinct: int
    largest_tie: float


def histogram(values: Any, labels: Any, *, show: float | None = None, bins: int = 40) -> Histogram:
    """Count ``values`` by class; ``show`` (the threshold) is kept inside the picture.

    A few far outliers do not squeeze everyone else: they are counted in the outermost bins.

    Examples:
        >>> h = histogram([0.0, 1.0, 2.0, 2.0], [0, 0, 1, 1], bins=2)
        >>> h.edges.tolist(), h.positives.tolist(), h.negatives.tolist(), h.largest_tie
        ([0.0, 1.0, 2.0], [0, 2], [1, 1], 0.5)
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(labels) == 1
    ends = [float(end) for part in (x[y], x[~y]) if part.size for end in _ends(part)]
    if show is not None and np.isfinite(show):
        ends.append(show)
    low, high = min(ends), max(ends)
    if not low + (high - low) / bins > low:  # all scores are (nearly) one value
        low, high = low - 0.5 * max(1.0, abs(low)), high + 0.5 * max(1.0, abs(high))
    edges = np.linspace(low, high, bins + 1)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    _, ties = np.unique(x, return_counts=True)
    return Histogram(
        edges,
        np.bincount(place[y], minlength=bins),
        np.bincount(place[~y], minlength=bins),
        len(ties),
        float(ties.max() / x.size),
    )


def _ends(part: Floats) -> tuple[float, float]:
    """The range of a class, at most its middle 99 % and as much again on either side."""
    low, high = np.quantile(part, [0.005, 0.995])
    return float(max(part.min(), 2 * low - high)), float(min(part.max(), 2 * high - low))


_NOT_DRAWN = ("epoch", "step", "seconds", "time")


@dataclass(frozen=True)
class TrainingSeries:
    """A named number over the epochs (or steps) in which it was noted."""

    name: str
    over: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def training_series(history: Sequence[Mapping[str, Any]]) -> list[TrainingSeries]:
    """The numbers of ``history`` in the order of their first mention; gaps are left out.

    Examples:
        >>> noted = [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25, "status": "held"}]
        >>> training_series(noted)
        [TrainingSeries(name='loss', over='epoch', x=(1.0, 2.0), y=(0.5, 0.25))]
    """
    over = next((n for n in ("epoch", "step") if history and is_number(history[0].get(n))), "row")
    names = dict.fromkeys(str(name) for row in history for name in row if name not in _NOT_DRAWN)
    found = []
    for name in names:
        points = [
            (float(row.get(over, place)), float(row[name]))
            for place, row in enumerate(history)
            if is_number(row.get(name)) and is_number(row.get(over, place))
        ]
        if points:
            x, y = zip(*points, strict=True)
            found.append(TrainingSeries(name, over, x, y))
    return found
