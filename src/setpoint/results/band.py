"""How many examples a threshold rests on: those in a narrow band around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import to_numpy
from setpoint.axes.group_choice import threshold_column
from setpoint.problems import Problem

BAND = 20
"""The band around a threshold is the spread of the scores over this, as in training."""


def effective(problem: Problem, scores: Any, labels: Any, groups: Any) -> tuple[float, float]:
    """``(sum k)^2 / sum k^2`` of the kernel at the threshold, for positives and negatives.

    Of several thresholds, and of those of several groups, the one that rests on fewest.
    """
    s = to_numpy(scores, "scores").reshape(-1).astype(float)
    y = to_numpy(labels, "labels").reshape(-1) == 1
    width = _spread(s) / BAND or 1.0
    smallest = [np.inf, np.inf]
    thresholds = problem.choose(scores, labels, groups=groups).thresholds
    for rows, threshold in _cut(problem, thresholds, groups, s):
        u = np.abs(np.clip((s[rows] - threshold) / width, -300, 300))
        kernel = np.exp(-u) / (1 + np.exp(-u)) ** 2
        for place, mine in enumerate((kernel[y[rows]], kernel[~y[rows]])):
            total = float((mine**2).sum())
            found = float(mine.sum()) ** 2 / total if total > 0 else 0.0
            smallest[place] = min(smallest[place], found)
    return smallest[0], smallest[1]


def _cut(
    problem: Problem, thresholds: Any, groups: Any, s: NDArray[np.float64]
) -> Iterator[tuple[Any, float]]:
    """Every threshold, and the rows that are cut by it."""
    if not isinstance(thresholds, Mapping):
        yield from ((slice(None), threshold) for threshold in thresholds)
        return
    column = threshold_column(problem, thresholds, groups, s)
    yield from ((column == threshold, threshold) for threshold in np.unique(column))


def _spread(s: NDArray[np.float64]) -> float:
    """Their deviation, with outliers pulled in to one more range of the middle nine tenths."""
    low, high = np.quantile(s, (0.05, 0.95))
    reach = high - low if high > low else np.inf
    return float(np.clip(s, low - reach, high + reach).std())
