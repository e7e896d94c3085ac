"""Probabilities of several classes from their scores: one slope, one offset a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

Floats = NDArray[np.float64]
PULL = 1.0
"""How many examples the wish for offsets of zero weighs: it keeps separable data finite."""


@dataclass(frozen=True)
class ClassCalibrator:
    """``softmax(slope * score + offset)``; the slope is positive."""

    slope: float
    offsets: Floats

    @classmethod
    def fit(
        cls, scores: Floats, labels: NDArray[np.int64], weights: Floats | None = None
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
            value += PULL * float(parameters @ parameters) / 2
            by = np.concatenate([[slope * float((wrong * z).sum())], wrong.sum(0)])
            return value / total, (by + PULL * parameters) / total

        start = np.zeros(1 + z.shape[1])
        limits = [(-7.0, 7.0), *[(-50.0, 50.0)] * z.shape[1]]
        exactly = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500}
        found = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B", options=exactly).x
        return cls(float(np.exp(found[0])) / spread, found[1:])

    def __call__(self, scores: Floats) -> Floats:
        """The probability of each class, ``[n, K]``."""
        centred = scores - scores.mean(1, keepdims=True)
        return np.asarray(softmax(self.slope * centred + self.offsets, axis=1))
