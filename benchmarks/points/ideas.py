"""Ideas for the default that need no more than the scores, each a small change of ``Implicit``.

They are tried on splits of their own (``--stage ideas``); none is part of the package.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import pi
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.common.axes import WithAxis
from benchmarks.points.ideas_seeing import AveragedThreshold, HeadAgain, Mixup
from setpoint import Implicit
from setpoint.axes import Everyone, Outcome, PlainOutcome, Sample, SoftCounts
from setpoint.axes.scan import Placement
from setpoint.rates import Array
from setpoint.steps import Sigmoid, Step, Values

TAIL = 0.1  # of the far side: the logistic step's own slope is 0.25 at the threshold
KEPT = 0.9  # of the average of older thresholds, at every batch
SMOOTHING = 0.1
MEMORY = 2048


class Cauchy(Step):
    """A step with a heavy tail: ten widths away an example still has a hundredth of the pull."""

    __slots__ = ()

    def value(self, u: Values) -> Values:
        """The distribution function of Cauchy."""
        return 0.5 + np.arctan(u) / pi

    def slope(self, u: Values) -> Values:
        """Its density."""
        return 1 / (pi * (1 + u * u))


@dataclass(frozen=True)
class FarCounts(SoftCounts):
    """Counts by the logistic step; on the wrong side examples are pulled as by a softplus, too."""

    def counts(self) -> tuple[Array, Array]:
        """As :meth:`SoftCounts.counts`, for a batch that fits in one piece."""
        u = (self.whole.scores[:, None] - self.at[..., None]) / self.width[..., None]
        columns = self.whole.columns
        away = np.where(columns[:, None, :, 0] > 0, -u, u)  # above 0: on the wrong side
        value, slope = self.step.value_and_slope(u)
        kernel = slope + TAIL * Sigmoid().value(away)
        self._kernels.append(kernel)
        return value @ columns, (kernel @ columns) / -self.width[..., None]


class FarSideAxis(Everyone):
    """One threshold for everyone, held by :class:`FarCounts`."""

    def held(self, counts: SoftCounts, placed: Placement, *, fresh: bool = True) -> PlainOutcome:
        """As for everyone, with the pull of the far side."""
        parts = (counts.step, counts.at, counts.width, counts.whole, counts.batch)
        return super().held(FarCounts(*parts), placed, fresh=fresh)


class FarSide(WithAxis):
    """Softplus on the far side, a sigmoid near."""

    axis_type = FarSideAxis


class SlowAxis(Everyone):
    """One threshold for everyone, averaged over batches relative to the scores."""

    _slow: Array | None = None
    _batches = 0

    def hold(self, whole, own, step, widening, placed=None) -> PlainOutcome:
        """Hold the average of the thresholds of all batches so far."""
        found = self.choose(whole) if placed is None else placed
        weights = whole.columns[..., :2].sum(-1)
        weights = weights / weights.sum(-1, keepdims=True)
        mean = (weights * whole.scores).sum(-1, keepdims=True)
        deviation = np.sqrt((weights * (whole.scores - mean) ** 2).sum(-1, keepdims=True))
        deviation = deviation + (deviation == 0)
        root = (found.marginal - mean) / deviation
        known = root if self._slow is None else self._slow
        kept = min(KEPT, (1 + self._batches) / (10 + self._batches))
        self._slow = kept * known + (1 - kept) * root
        self._batches += 1
        at = mean + deviation * self._slow
        return super().hold(whole, own, step, widening, replace(found, marginal=at, threshold=at))


class SlowThresholds(WithAxis):
    """Thresholds averaged over batches, in units of the scores' mean and deviation."""

    axis_type = SlowAxis


class GaussNewtonAxis(Everyone):
    """One threshold for everyone; the gradient divided by its curvature on each score."""

    def held(self, counts: SoftCounts, placed: Placement, *, fresh: bool = True) -> PlainOutcome:
        """As for everyone, with another gradient."""
        outcome = super().held(counts, placed, fresh=fresh)
        width = counts.width[..., None]
        u = (counts.batch.scores[:, None] - counts.at[..., None]) / width
        kernel, bend = counts.step.slope(u), abs(counts.step.curvature(u)) / width
        curvature = abs(outcome.gradient) * bend.sum(1) / (kernel.sum(1) + 1e-12)
        return replace(outcome, gradient=_damped(outcome.gradient, curvature, counts.batch))


class GaussNewton(WithAxis):
    """Both gradients divided by their own curvature on each score, damped by its mean.

    Each class keeps its total, so that moving all scores still changes nothing.
    """

    axis_type = GaussNewtonAxis

    def _main_gradient(self, batch: Any, outcome: Outcome, scores: Tensor, *given: Any) -> Array:
        assert isinstance(outcome, PlainOutcome)
        main, batch = super()._main_gradient(batch, outcome, scores, *given), outcome.counts.batch
        return _damped(main, Sigmoid().slope(batch.scores), batch)


def _damped(gradient: Array, curvature: Array, batch: Sample) -> Array:
    """``gradient / (curvature + its mean)``, ``[c, n]``, with the total of each class kept."""
    positive = batch.columns[..., 0] > 0
    scaled = gradient / (curvature + curvature.mean(-1, keepdims=True) + 1e-30)
    for of_class in (positive, ~positive):
        before, after = ((x * of_class).sum(-1, keepdims=True) for x in (gradient, scaled))
        factor = before / np.where(after == 0, 1.0, after)
        scaled = np.where(of_class, scaled * factor, scaled)
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
