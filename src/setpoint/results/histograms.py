"""Where the scores of both classes lie, and whether they can be told apart at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Histogram:
    """Counts of both classes in equal bins; ``largest_tie`` is the share of one single value."""

    edges: NDArray[np.float64]
    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    distinct: int
    largest_tie: float


def histogram(values: Any, labels: Any, *, show: float | None = None, bins: int = 40) -> Histogram:
    """Count ``values`` by class; ``show`` (the threshold) is kept inside the picture.

    A few far outliers do not squeeze everyone else: they are counted in the outermost bins.

    Example:
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


def _ends(part: NDArray[np.float64]) -> tuple[float, float]:
    """The range of a class, but no farther out than its middle 99 % is wide."""
    low, high = np.quantile(part, [0.005, 0.995])
    return float(max(part.min(), 2 * low - high)), float(min(part.max(), 2 * high - low))
