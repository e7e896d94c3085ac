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
from typing import Any

import numpy as np

from setpoint.axes.sample import Sample
from setpoint.rates import Array, Counts, Expression, Tables, Where
from setpoint.steps import Step

CHUNK = 2**15
"""Pairs of score and threshold taken at once: a few arrays of them fit a processor's cache."""
KEPT = 2**23
"""Pairs whose kernel is kept for the gradient, instead of being computed again: 64 MB."""


@dataclass(frozen=True)
class SoftCounts:
    """A sample read with a step of some ``width`` [c, m] or [c, 1] around thresholds ``at``.

    The counts and their slopes come from ``whole``, the gradient of the scores from ``batch``;
    without a memory the two are the same examples. Numpy or torch, as the samples are.
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
        keep = self.whole is self.batch and self._pairs * self.whole.scores.shape[-1] <= KEPT
        keep = keep and self.step.complementary and not self._kernels
        for part, u in self._distances(self.whole.scores):
            here, kernel = self.step.value_and_slope(u)
            some = self.whole.columns[:, part]
            value, slope = here @ some, kernel @ some
            if not self.step.complementary:
                value = _joined([value, self.step.value(-u) @ some], -1)
                slope = _joined([slope, -(self.step.slope(-u) @ some)], -1)
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
            return _joined(parts, 1)
        for part, u in self._distances(self.batch.scores):
            some = columns[:, part]
            pulls = _pulled(by[..., :k], some, self.step.slope(u))
            if not self.step.complementary:
                pulls = pulls - _pulled(by[..., k:], some, self.step.slope(-u))
            parts.append(pulls)
        return _joined(parts, 1)

    @property
    def _pairs(self) -> int:
        """How many thresholds each example meets."""
        return int(self.at.shape[0] * self.at.shape[1])

    def tensors(self, device: Any = None) -> SoftCounts:
        """The same with tensors, for criteria that compute with these."""
        import torch

        at, width = (torch.from_numpy(np.ascontiguousarray(x)) for x in (self.at, self.width))
        whole = self.whole.tensors(device)
        own = whole if self.batch is self.whole else self.batch.tensors(device)
        return SoftCounts(self.step, at.to(device), width.to(device), whole, own)

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
        size = max(1, CHUNK // self._pairs)
        at, scale = self.at[..., None], 1 / self.width[..., None]
        for start in range(0, scores.shape[1], size):
            part = slice(start, start + size)
            u = scores[:, None, part] - at
            u *= scale
            yield part, u


def tables_of(counts: Array, totals: Array, slices: tuple[Where, ...]) -> Tables:
    """The counts ``[c, m, k]`` of :meth:`SoftCounts.counts` as tables, ``[c, m]`` per slice."""
    k, all_ = 2 * len(slices), totals[:, None]
    no = all_ - counts if counts.shape[-1] == k else counts[..., k:]
    return {
        where: Counts(*(part[..., i + j] for part in (counts, no, all_) for j in (0, 1)))
        for i, where in zip(range(0, k, 2), slices, strict=True)
    }


def gradient_of(
    expression: Expression, counts: Array, tables: Tables, slices: tuple[Where, ...]
) -> Array:
    """How an expression changes with each of these counts, ``[c, m, k]``."""
    numpy = isinstance(counts, np.ndarray)
    total = np.zeros(counts.shape) if numpy else counts.new_zeros(counts.shape)
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


def _joined(parts: list[Array], axis: int) -> Array:
    """Arrays, or tensors, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis)
    import torch

    return torch.cat(parts, axis)
