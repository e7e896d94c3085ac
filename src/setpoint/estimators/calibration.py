"""Probabilities from scores: a monotone curve fitted on validation data.

Losses for an operating point fix scores only up to shift and scale, so ``sigmoid(score)`` is no
probability. A slope and an offset (one per class, for several classes) are fitted by maximum
likelihood (Platt, 1999). The slope is positive: a higher score is never a lower probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from setpoint.axes.arrays import Floats

_PRIOR = 1.0
"""The weight, in examples, of the prior that pulls offsets to zero; separable data stay finite."""


@dataclass(frozen=True)
class Calibrator:
    """``sigmoid(slope * (score - centre) + offset)``."""

    slope: float
    centre: float
    offset: float

    @classmethod
    def fit(cls, scores: Floats, labels: NDArray[Any], weights: Floats | None = None) -> Calibrator:
        """The likeliest curve, with Platt's targets, which keep it finite on separable data."""
        labels = labels.astype(np.float64)
        weights = np.ones_like(scores) if weights is None else weights
        centre = float(np.average(scores, weights=weights))
        spread = float(np.sqrt(np.average((scores - centre) ** 2, weights=weights))) or 1.0
        z = (scores - centre) / spread
        positives, negatives = float(weights @ labels), float(weights @ (1 - labels))
        high, low = (positives + 1) / (positives + 2), 1 / (negatives + 2)
        targets = np.where(labels > 0, high, low)

        def loss(parameters: Floats) -> tuple[float, Floats]:
            slope, logits = np.exp(parameters[0]), np.exp(parameters[0]) * z + parameters[1]
            losses = np.logaddexp(0, logits) - targets * logits
            wrong = weights * (expit(logits) - targets)
            gradient = np.array([slope * (wrong @ z), wrong.sum()])
            return float(weights @ losses) / weights.sum(), gradient / weights.sum()

        start = np.array([0.0, np.log((positives + 1) / (negatives + 1))])
        limits = [(-7.0, 7.0), (-50.0, 50.0)]
        exactly = {"ftol": 1e-15, "gtol": 1e-12}  # so that weight 2 and two copies agree
        found = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B", options=exactly).x
        return cls(float(np.exp(found[0])) / spread, centre, float(found[1]))

    def __call__(self, scores: Floats) -> Floats:
        """The probability of the positive class for each score."""
        return np.asarray(expit(self.slope * (scores - self.centre) + self.offset))


@dataclass(frozen=True)
class ClassCalibrator:
    """``softmax(slope * score + offset)``; the slope is positive."""

    slope: float
    offsets: Floats

    @classmethod
    def fit(
        cls, scores: Floats, labels: NDArray[Any], weights: Floats | None = None
    ) -> ClassCalibrator:
        """The likeliest curve on these examples."""
        weights = np.ones(len(scores)) if weights is None else weights
        centred = scores - scores.mean(1, keepdims=True)
        spread = float(np.sqrt(np.average((centred**2).mean(1), weights=weights))) or 1.0
        z, rows, total = centred / spread, np.arange(len(labels)), float(weights.sum())
        truth = np.zeros_like(z)
        truth[rows, labels] = 1.0

        def loss(parameters: Floats) -> tuple[float, Floats]:
            slope, offsets = np.exp(parameters[0]), parameters[1:]
            logits = slope * z + offsets
            wrong = weights[:, None] * (softmax(logits, axis=1) - truth)
            value = -float(weights @ log_softmax(logits, axis=1)[rows, labels])
            value += _PRIOR * float(parameters @ parameters) / 2
            by = np.concatenate([[slope * float((wrong * z).sum())], wrong.sum(0)])
            return value / total, (by + _PRIOR * parameters) / total

        start = np.zeros(1 + z.shape[1])
        limits = [(-7.0, 7.0), *[(-50.0, 50.0)] * z.shape[1]]
        exactly = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500}
        found = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B", options=exactly).x
        return cls(float(np.exp(found[0])) / spread, found[1:])

    def __call__(self, scores: Floats) -> Floats:
        """The probability of each class, ``[n, K]``."""
        centred = scores - scores.mean(1, keepdims=True)
        return np.asarray(softmax(self.slope * centred + self.offsets, axis=1))
