"""Soft counts: how many examples lie above a threshold, and how that changes.

``sum_i weight_i step((score_i - threshold) / width)`` for every threshold and column of weights,
with its derivatives by the threshold and by the scores. They are written by hand for two reasons:
the step's own slope keeps a gradient far from the threshold, where automatic differentiation of a
sigmoid has none left, and examples are taken some at a time, so that a million scores times ten
thresholds stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from setpoint.axes.sample import Sample
from setpoint.rates import Array, Combination, Expression, Rate, Tables, Where
from setpoint.steps import Step

CHUNK = 2**15
"""Pairs of score and threshold taken at once: a few arrays of them fit a processor's cache."""
KEPT = 2**23
"""Pairs whose kernel is kept for the gradient, instead of being computed again: 64 MB."""


@dataclass(frozen=True)
class SoftCounts:
    """A sample read with a step of some ``width`` [c, m] or [c, 1] around thresholds ``at``.

    The counts and their slopes come from ``whole``, the gradient of the scores from ``batch``;
    without a memory the two are the same examples.
    """

    step: Step
    at: Array
    width: Array
    whole: Sample
    batch: Sample
    _kernels: list[Array] = field(default_factory=list, compare=False, repr=False)

    def counts(self) -> tuple[Array, Array]:
        """Accepted weight in every column, and its slope by the threshold, ``[c, m, k]``.

        For a step that is not complementary, rejected weight follows in further ``k`` columns.
        """
        values, slopes = [], []
        pairs = self.at.shape[0] * self.at.shape[1] * self.whole.scores.shape[-1]
        keep = self.whole is self.batch and self.step.complementary and pairs <= KEPT
        keep = keep and not self._kernels
        for part, u in self._distances(self.whole.scores):
            here, kernel = self.step.value_and_slope(u)
            some = self.whole.columns[:, part]
            value, slope = here @ some, kernel @ some
            if not self.step.complementary:
                value = _concatenated([value, self.step.value(-u) @ some], -1)
                slope = _concatenated([slope, -(self.step.slope(-u) @ some)], -1)
            if keep:
                self._kernels.append(kernel)
            values.append(value)
            slopes.append(slope)
        return sum(values[1:], values[0]), sum(slopes[1:], slopes[0]) / -self.width[..., None]

    def pull(self, by_count: Array) -> Array:
        """The gradient on the batch's scores ``[c, n]`` from that on the counts ``[c, m, k]``."""
        columns, by = self.batch.columns, by_count / self.width[..., None]
        k, parts, start = columns.shape[-1], [], 0
        for kernel in self._kernels:
            stop = start + kernel.shape[-1]
            parts.append(_pulled(by, columns[:, start:stop], kernel))
            start = stop
        if parts:
            return parts[0] if len(parts) == 1 else _concatenated(parts, 1)
        for part, u in self._distances(self.batch.scores):
            some = columns[:, part]
            pulls = _pulled(by[..., :k], some, self.step.slope(u))
            if not self.step.complementary:
                pulls = pulls - _pulled(by[..., k:], some, self.step.slope(-u))
            parts.append(pulls)
        return _concatenated(parts, 1)

    def examples_in_band(self) -> Array:
        """How many examples share the gradient: ``(sum k)^2 / sum k^2`` of the kernel weights."""
        weight, squares = self.band()
        return weight**2 / (squares + (squares == 0)) * (squares > 0)

    def band(self) -> tuple[Array, Array]:
        """Of the kernel's weights around the thresholds: their sum, that of their squares."""
        distance = self.whole.scores[:, None] - self.at[..., None]
        weights = self.whole.columns[..., :2].sum(-1)[:, None]
        kernel = self.step.slope(distance / self.width[..., None]) * weights
        return kernel.sum(-1), (kernel**2).sum(-1)

    def _distances(self, scores: Array) -> Iterator[tuple[slice, Array]]:
        """``(score - threshold) / width`` for some examples at a time, ``[c, m, part]``."""
        size = max(1, CHUNK // (self.at.shape[0] * self.at.shape[1]))
        at, scale = self.at[..., None], 1 / self.width[..., None]
        for start in range(0, scores.shape[1], size):
            part = slice(start, start + size)
            u = scores[:, None, part] - at
            u *= scale
            yield part, u


class Form:
    """An expression of soft counts: its value, and how it changes with each count.

    A rate, or a weighted sum of ``r`` rates, is written as arrays once: rejected examples are those
    of the total that are not accepted, so numerators and denominators are
    ``accepted @ weights + totals @ weights + constants``. Other expressions, and steps for which
    accepted and rejected do not add up, are read from tables of counts.
    """

    def __init__(self, expression: Expression, slices: tuple[Where, ...]) -> None:
        self.expression, self.slices = expression, slices
        terms = expression.terms if isinstance(expression, Combination) else ((1.0, expression),)
        rates = [rate for _, rate in terms if isinstance(rate, Rate)]
        self.is_sum = len(rates) == len(terms) > 0
        if not self.is_sum:
            return
        self.weights = np.array([weight for weight, _ in terms])
        self.constant = expression.constant if isinstance(expression, Combination) else 0.0
        counts = [rate.numerator for rate in rates] + [rate.denominator for rate in rates]
        self.one = np.array([count.one for count in counts])
        self.totals, by_accepted = np.zeros((2, 2 * len(slices), len(counts)))
        for i, (count, rate) in enumerate(zip(counts, rates * 2, strict=True)):
            rows = slice(2 * slices.index(rate.where), 2 * slices.index(rate.where) + 2)
            self.totals[rows, i] = count.fn, count.tn
            by_accepted[rows, i] = count.tp - count.fn, count.fp - count.tn
        self.top, self.bottom = np.split(by_accepted, 2, axis=1)
        self.moves = bool(self.bottom.any())  # whether a denominator depends on the thresholds

    def __call__(self, soft: Tabled) -> tuple[Array, Array]:
        """The value ``[c, m]`` and its derivatives ``[c, m, k]`` (or ``[c, 1, k]``, if alike)."""
        accepted, totals = soft.accepted, soft.totals
        if not self.is_sum or accepted.shape[-1] != totals.shape[-1]:
            by_count = gradient_of(self.expression, accepted, soft.tables, self.slices)
            return self.expression.of(soft.tables), by_count
        fixed = (totals @ self.totals + self.one)[:, None]
        above, below = fixed[..., : len(self.weights)], fixed[..., len(self.weights) :]
        if self.moves:
            below = below + accepted @ self.bottom
        rates = (accepted @ self.top + above) / below
        shares = self.weights / below
        by_count = shares @ self.top.T
        if self.moves:
            by_count = by_count - (shares * rates) @ self.bottom.T
        value = rates @ self.weights
        return value + self.constant if self.constant else value, by_count

    def by_count(self, soft: Tabled) -> Array:
        """The derivatives alone."""
        if not self.is_sum or self.moves or soft.accepted.shape[-1] != soft.totals.shape[-1]:
            return self(soft)[1]
        count = len(self.weights)
        below = soft.totals @ self.totals[:, count:] + self.one[count:]
        return ((self.weights / below) @ self.top.T)[:, None]


class Tabled(Protocol):
    """Soft counts around thresholds."""

    @property
    def accepted(self) -> Array:
        """Accepted weight in every column, ``[c, m, k]``."""

    @property
    def totals(self) -> Array:
        """The weight of every column, ``[c, k]``."""

    @property
    def tables(self) -> Tables:
        """Both as tables, ``[c, m]`` per slice."""


def gradient_of(
    expression: Expression, counts: Array, tables: Tables, slices: tuple[Where, ...]
) -> Array:
    """How an expression changes with each of these counts, ``[c, m, k]``."""
    total = np.zeros(counts.shape)
    k = 2 * len(slices)
    folded = counts.shape[-1] == k  # rejected examples are those that are not accepted
    for (where, i), slope in expression.gradient(tables).items():
        column = 2 * slices.index(where) + i % 2
        if i < 2:
            total[..., column] += slope
        elif folded:
            total[..., column] -= slope
        else:
            total[..., column + k] += slope
    return total


def _pulled(by_count: Array, columns: Array, kernel: Array) -> Array:
    """``sum_m kernel (columns @ by_count)``, ``[c, n]``."""
    pulls = by_count @ columns.swapaxes(-1, -2)
    pulls *= kernel
    return pulls[:, 0] if pulls.shape[1] == 1 else pulls.sum(1)


def _concatenated(parts: list[Array], axis: int) -> Array:
    """Arrays one after the other, without a copy of a single one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis)
