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

import torch
from torch import Tensor

from setpoint.steps import Step
from setpoint.thresholds.sample import Sample

CHUNK = 2**17
"""Pairs of score and threshold taken at once, in the order of a processor's cache."""


@dataclass(frozen=True)
class Reading:
    """How a batch is read: a step of some ``width`` around thresholds ``at``, both ``[c, m]``.

    The counts and their slopes come from ``whole``, the gradient of the scores from ``batch``;
    without a memory the two are the same examples.
    """

    step: Step
    at: Tensor
    width: Tensor
    whole: Sample
    batch: Sample
    _kernels: list[Tensor] = field(default_factory=list, compare=False, repr=False)

    def counts(self) -> tuple[Tensor, Tensor]:
        """Accepted weight in every column, and its slope by the threshold, ``[c, m, k]``.

        For a step that is not complementary, rejected weight follows in further ``k`` columns.
        """
        value = slope = None
        for part, u in self._distances(self.whole.scores):
            columns = self.whole.columns[:, part]
            value_here, kernel = self.step.value_and_slope(u)
            values, slopes = [value_here @ columns], [kernel @ columns]
            if not self.step.complementary:
                values.append(self.step.value(-u) @ columns)
                slopes.append(-(self.step.slope(-u) @ columns))
            elif self.whole is self.batch and u.shape[-1] == self.batch.scores.shape[-1]:
                self._kernels.append(kernel)  # everything at once: it will do for the gradient
            here, there = (x[0] if len(x) == 1 else torch.cat(x, -1) for x in (values, slopes))
            value = here if value is None else value + here
            slope = there if slope is None else slope + there
        assert value is not None
        assert slope is not None
        return value, slope / -self.width[..., None]

    def pull(self, by_count: Tensor) -> Tensor:
        """The gradient on the batch's scores ``[c, n]`` from that on the counts ``[c, m, k]``."""
        columns, k = self.batch.columns, self.batch.columns.shape[-1]
        by_count = by_count / self.width[..., None]
        if self._kernels:
            return (by_count @ columns.mT).mul_(self._kernels[0]).sum(1)
        parts = []
        for part, u in self._distances(self.batch.scores):
            weights = columns[:, part].mT
            pulls = (by_count[..., :k] @ weights).mul_(self.step.slope(u))
            if not self.step.complementary:
                pulls -= (by_count[..., k:] @ weights).mul_(self.step.slope(-u))
            parts.append(pulls.sum(1))
        return torch.cat(parts, 1)

    def _distances(self, scores: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """``(score - threshold) / width`` for some examples at a time, ``[c, m, part]``."""
        size = max(1, CHUNK // self.at.numel())
        at, scale = self.at[..., None], 1 / self.width[..., None]
        for start in range(0, scores.shape[1], size):
            part = slice(start, start + size)
            yield part, (scores[:, None, part] - at).mul_(scale)
