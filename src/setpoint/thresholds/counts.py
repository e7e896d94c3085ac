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

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.rates import Array
from setpoint.steps import Step
from setpoint.thresholds.arrays import alike, array_of, library_of, tensor_of
from setpoint.thresholds.sample import Sample

CHUNK = 2**17
"""Pairs of score and threshold taken at once, in the order of a processor's cache."""


@dataclass(frozen=True)
class Reading:
    """How a batch is read: a step of some ``width`` [c, m] or [c, 1] around thresholds ``at``.

    The counts and their slopes come from ``whole``, the gradient of the scores from ``batch``;
    without a memory the two are the same examples. Around tensors counts are tensors, around arrays
    of numpy they are such arrays.
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
        value = slope = None
        columns = array_of(self.whole.columns)
        for part, u in self._distances(self.whole.scores):
            here, kernel = map(array_of, self.step.value_and_slope(u))
            some = columns[:, part]
            values, slopes = [here @ some], [kernel @ some]
            if not self.step.complementary:
                values.append(array_of(self.step.value(-u)) @ some)
                slopes.append(-(array_of(self.step.slope(-u)) @ some))
            elif self.whole is self.batch and u.shape[-1] == self.batch.scores.shape[-1]:
                self._kernels.append(kernel)  # everything at once: it will do for the gradient
            added, moved = (_joined(x, -1) for x in (values, slopes))
            value = added if value is None else value + added
            slope = moved if slope is None else slope + moved
        assert slope is not None
        slope = slope / -array_of(self.width)[..., None]
        return alike(value, self.at), alike(slope, self.at)

    def pull(self, by_count: Array) -> Array:
        """The gradient on the batch's scores ``[c, n]`` from that on the counts ``[c, m, k]``."""
        columns, by = array_of(self.batch.columns), array_of(by_count)
        k = columns.shape[-1]
        with quiet(library_of(self.at)):
            by = by / array_of(self.width)[..., None]
            if self._kernels:
                return alike(_pulled(by, columns, self._kernels[0]), by_count)
            parts = []
            for part, u in self._distances(self.batch.scores):
                some = columns[:, part]
                pulls = _pulled(by[..., :k], some, array_of(self.step.slope(u)))
                if not self.step.complementary:
                    pulls = pulls - _pulled(by[..., k:], some, array_of(self.step.slope(-u)))
                parts.append(pulls)
            return alike(_joined(parts, 1), by_count)

    def band(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """Of the kernel's weights around thresholds ``at``: their sum, that of their squares."""
        whole, width = self.whole.tensors(), tensor_of(self.width)
        distance = whole.scores[:, None] - at[..., None]
        weights = whole.columns[..., :2].sum(-1)[:, None]
        kernel = self.step.slope(distance / width[..., None]) * weights
        return kernel.sum(-1), (kernel**2).sum(-1)

    def _distances(self, scores: Array) -> Iterator[tuple[slice, Tensor]]:
        """``(score - threshold) / width`` for some examples at a time, ``[c, m, part]``."""
        size = max(1, CHUNK // (self.at.shape[0] * self.at.shape[1]))
        at, scale = array_of(self.at)[..., None], 1 / array_of(self.width)[..., None]
        values = array_of(scores)
        for start in range(0, scores.shape[1], size):
            part = slice(start, start + size)
            u = values[:, None, part] - at
            u *= scale
            yield part, tensor_of(u)


def _pulled(by_count: Array, columns: Array, kernel: Array) -> Array:
    """``sum_m kernel (columns @ by_count)``, ``[c, n]``."""
    pulls = by_count @ columns.swapaxes(-1, -2)
    pulls *= kernel
    return pulls[:, 0] if pulls.shape[1] == 1 else pulls.sum(1)


def _joined(parts: list[Array], axis: int) -> Array:
    if len(parts) == 1:
        return parts[0]
    return torch.cat(parts, axis) if isinstance(parts[0], Tensor) else np.concatenate(parts, axis)
