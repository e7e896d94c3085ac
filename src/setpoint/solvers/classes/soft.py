"""Soft decisions between classes: ``softmax((score - shift) / width)``, and their counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.class_data import ClassData, added, all_rivals
from setpoint.axes.confusion import Matrix
from setpoint.axes.cuts import Cuts
from setpoint.rates import MATRIX, Counts, Gradient, Where
from setpoint.solvers.classes.subsets import chance_of
from setpoint.thresholds import spread

Floats = NDArray[np.float64]


def margin_spread(data: ClassData, shifts: Floats) -> float:
    """The spread of the margins ``score - (best of the others)``, the mean over classes.

    Two classes have one margin (the other is its negative), and this is its spread.
    """
    if data.scores.shape[1] == 2:
        margins = (data.scores[:, 1] - data.scores[:, 0])[None]
    else:
        shifted = data.scores - shifts
        margins = (shifted - all_rivals(shifted)).T
    weights = np.broadcast_to(data.weights, margins.shape)
    cuts = Cuts.sort(np, margins, {(): (weights, np.zeros_like(weights))})
    return float(np.mean(spread(cuts)))


@dataclass(frozen=True)
class Soft:
    """A batch around its shifts."""

    data: ClassData
    shifts: Floats
    width: float
    ks: frozenset[int]

    @cached_property
    def z(self) -> Floats:
        """The shifted scores in units of the width."""
        return np.asarray((self.data.scores - self.shifts) / self.width)

    @cached_property
    def p(self) -> Floats:
        """The soft decisions, ``[n, K]``."""
        powers = np.exp(self.z - self.z.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))

    @cached_property
    def _chances(self) -> dict[int, tuple[Floats, Floats]]:
        return {k: chance_of(self.z, self.data.labels, k) for k in self.ks}

    def tables(self) -> dict[Where, Counts]:
        """The soft counts of every slice; classes that are not there do not count in means."""
        labels, count = self.data.labels, self.p.shape[1]
        tables = {}
        for where, weights in self.data.inside.items():
            truth = np.zeros((len(labels), count))
            truth[np.arange(len(labels)), labels] = weights
            hit = {k: added(labels, weights * own, count) for k, (own, _) in self._chances.items()}
            tables[where] = Matrix(truth.T @ self.p, self.data.members, hit).table()
        return tables

    def pull(self, by_count: Gradient) -> Floats:
        """The gradient on the scores, ``[n, K]``, from that on the counts."""
        total = np.zeros_like(self.p)
        for (where, i), slope in by_count.items():
            weights = self.data.inside[where][:, None]
            if i < 0:
                total += weights * slope[self.data.labels][:, None] * self._chances[-i][1]
            else:
                total += weights * self._pull_entries(by_entry(i, slope, self.p.shape[1]))
        return total / self.width

    def _pull_entries(self, slopes: Floats) -> Floats:
        """``p_j sum_i p_i (D_j - D_i)`` for the row of the true class: nothing cancels in it."""
        result = np.empty_like(self.p)
        for label in np.unique(self.data.labels):
            rows = self.data.labels == label
            differences = slopes[label][:, None] - slopes[label]
            result[rows] = self.p[rows] * (self.p[rows] @ differences.T)
        return result

    def coverage_slopes(self) -> Floats:
        """How the shares of predictions change with the shifts, ``[K, K]``: minus a Laplacian."""
        weights = self.data.inside[()]
        beside = (self.p * weights[:, None]).T @ self.p
        np.fill_diagonal(beside, 0.0)
        np.fill_diagonal(beside, -beside.sum(1))
        return np.asarray(beside / (self.width * weights.sum()))

    def coverages(self) -> Floats:
        """The share of predictions of each class."""
        weights = self.data.inside[()]
        return np.asarray(weights @ self.p / weights.sum())


def by_entry(kind: int, slope: Floats, count: int) -> Floats:
    """Slopes by entry of the matrix; of right (TP) and wrong (FN) decisions alone for 0 and 2."""
    if kind == MATRIX:
        return slope
    right = np.eye(count)
    return slope * (right if kind == 0 else 1 - right if kind == 2 else 0 * right)


def joined(*parts: tuple[float, Mapping[tuple[Where, int], Floats]]) -> Gradient:
    """The sum of gradients with weights."""
    total: Gradient = {}
    for weight, gradient in parts:
        for key, slope in gradient.items():
            total[key] = total.get(key, 0.0) + weight * slope
    return total
