"""Ideas for the default that need no more than the scores, each a small change of ``Implicit``.

They are tried on splits of their own (``--stage ideas``); none is part of the package.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import pi
from typing import Any

import torch
from setpoint.thresholds import array_of
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.points.ideas_seeing import AveragedThreshold, HeadAgain, InTensors, Mixup
from setpoint import Implicit
from setpoint.axes.soft_counts import SoftCounts
from setpoint.steps import Step

TAIL = 0.1  # of the far side: the logistic step's own slope is 0.25 at the threshold
KEPT = 0.9  # of the average of older thresholds, at every batch
SMOOTHING = 0.1
MEMORY = 2048


class Cauchy(Step):
    """A step with a heavy tail: ten widths away an example still has a hundredth of the pull."""

    __slots__ = ()

    def value(self, u: Tensor) -> Tensor:
        """The distribution function of Cauchy."""
        return 0.5 + torch.atan(u) / pi

    def slope(self, u: Tensor) -> Tensor:
        """Its density."""
        return 1 / (pi * (1 + u * u))


@dataclass(frozen=True)
class FarReading(SoftCounts):
    """Counts by the logistic step; on the wrong side examples are pulled as by a softplus, too."""

    def counts(self) -> tuple[Tensor, Tensor]:
        """As :meth:`SoftCounts.counts`, for a batch that fits in one piece."""
        u = (self.whole.scores[:, None] - self.at[..., None]) / self.width[..., None]
        positive = self.whole.columns[:, None, :, 0] > 0
        away = torch.where(positive, -u, u)  # above 0: on the wrong side
        value, slope = self.step.value_and_slope(u)
        kernel = slope + TAIL * torch.sigmoid(away)
        self._kernels.append(array_of(kernel))
        columns = self.whole.columns
        return value @ columns, (kernel @ columns) / -self.width[..., None]


class FarSide(InTensors):
    """Softplus on the far side, a sigmoid near."""

    def _read(self, *given: Any) -> Any:
        reading, seat = super()._read(*given)
        parts = (reading.step, reading.at, reading.width, reading.whole, reading.batch)
        return FarReading(*parts), seat


class SlowThresholds(InTensors):
    """Thresholds averaged over batches, in units of the scores' mean and deviation."""

    _slow: Tensor | None = None

    def _read(self, *given: Any) -> Any:
        reading, seat = super()._read(*given)
        scores, weights = reading.whole.scores, reading.whole.columns[..., :2].sum(-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mean = (weights * scores).sum(-1, keepdim=True)
        deviation = (weights * (scores - mean) ** 2).sum(-1, keepdim=True).sqrt()
        deviation = deviation + (deviation == 0)
        root = (seat.marginal - mean) / deviation
        known = root if self._slow is None else self._slow
        kept = min(KEPT, (1 + int(self.step_count)) / (10 + int(self.step_count)))
        self._slow = kept * known + (1 - kept) * root
        at = mean + deviation * self._slow
        return replace(reading, at=at, _kernels=[]), replace(seat, marginal=at, threshold=at)


class GaussNewton(InTensors):
    """Both gradients divided by their own curvature on each score, damped by its mean.

    Each class keeps its total, so that moving all scores still changes nothing.
    """

    def _main(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor | None:
        main = super()._main(scores, labels, weights)
        if main is None:
            return None
        chance = torch.sigmoid(scores.detach())
        return _damped(main.T, (chance * (1 - chance)).T, labels.T > 0).T

    def _loss(self, scores: Tensor, value: Tensor, gradient: Tensor, *more: Any) -> Tensor:
        reading = self._last.reading
        width = reading.width[..., None]
        u = (reading.batch.scores[:, None] - reading.at[..., None]) / width
        kernel, bend = reading.step.slope(u), reading.step.curvature(u).abs() / width
        curvature = gradient.abs() * bend.sum(1) / (kernel.sum(1) + 1e-12)
        positive = reading.batch.columns[..., 0] > 0
        return super()._loss(scores, value, _damped(gradient, curvature, positive), *more)


def _damped(gradient: Tensor, curvature: Tensor, positive: Tensor) -> Tensor:
    """``gradient / (curvature + its mean)``, ``[c, n]``, with the total of each class kept."""
    scaled = gradient / (curvature + curvature.mean(-1, keepdim=True) + 1e-30)
    for of_class in (positive, ~positive):
        before, after = ((x * of_class).sum(-1, keepdim=True) for x in (gradient, scaled))
        factor = before / torch.where(after == 0, 1.0, after)
        scaled = torch.where(of_class, scaled * factor, scaled)
    return scaled


def smoothed(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with labels moved towards one half."""
    soft = labels * (1 - SMOOTHING) + SMOOTHING / 2
    return binary_cross_entropy_with_logits(scores, soft)


IDEAS: dict[str, Any] = {
    "softplus on the far side": FarSide,
    "a step of Cauchy": partial(Implicit, step=Cauchy()),
    "thresholds averaged over batches": SlowThresholds,
    "thresholds of a memory": partial(Implicit, memory=MEMORY),
    "the averaged model's thresholds": AveragedThreshold,
    "labels smoothed in the main loss": partial(Implicit, main=smoothed),
    "mixup in the main loss": Mixup,
    "Gauss-Newton scaling": GaussNewton,
    "last weights": Implicit,
    "head trained again": HeadAgain,
}
"""What is tried by its name: makes a criterion of a problem and ``steps=``."""
