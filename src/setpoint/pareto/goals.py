"""Goals of a classifier by name, to be traded for each other: losses, and gaps between groups.

Predictions are probabilities here (the sigmoid of a score), so that gaps have gradients;
:func:`decision_rates` counts decisions. Groups are one-hot columns ``[n, k]``; one column of ones
where there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setpoint.solvers import cross_entropy

_ROUND = 1e-3
"""Gaps below this are rounded off: at zero a plain gap has a kink, where no step comes to rest."""


@dataclass(frozen=True)
class TableLosses:
    """Two goals of one model, by their names in :data:`GOAL_LOSSES`; call it as ``objectives``."""

    minimize: str
    hold: str

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor, groups: Tensor) -> dict[str, Tensor]:
        """Both losses on a batch; one forward pass."""
        scores = model(x).reshape(-1)
        return {name: GOAL_LOSSES[name](scores, y, groups) for name in (self.minimize, self.hold)}


def covariance(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """``|cov(prediction, group)|``; of several groups, the length over all but one.

    The paper takes its square, which has the same fronts (a monotone map changes no optimum) but
    next to no gradient where a model is nearly fair: training for it first never gets there.
    """
    predictions = torch.sigmoid(scores)
    centred = predictions - predictions.mean()
    return _rounded((centred[:, None] * groups[:, 1:]).mean(0).square().sum())


def coverage_gap(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """The largest difference between two groups' mean predictions (demographic parity)."""
    return _gap_between(torch.sigmoid(scores), groups)


def tpr_gap(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """As :func:`coverage_gap`, among the positives (equal opportunity)."""
    return _gap_between(torch.sigmoid(scores), groups * (labels > 0)[:, None])


def fpr_gap(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """As :func:`coverage_gap`, among the negatives."""
    return _gap_between(torch.sigmoid(scores), groups * (labels <= 0)[:, None])


def loss(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """Cross-entropy."""
    return cross_entropy(scores, labels)


def misses(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """Cross-entropy of the positives."""
    return cross_entropy(scores, labels, (labels > 0).to(scores.dtype))


def false_alarms(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """Cross-entropy of the negatives."""
    return cross_entropy(scores, labels, (labels <= 0).to(scores.dtype))


GOAL_LOSSES = {
    "loss": loss,
    "misses": misses,
    "false_alarms": false_alarms,
    "coverage_gap": coverage_gap,
    "tpr_gap": tpr_gap,
    "fpr_gap": fpr_gap,
    "covariance": covariance,
}


@dataclass(frozen=True)
class Judge:
    """Held-out rows; call it as ``measure``."""

    x: Tensor
    y: Tensor
    groups: Tensor

    def __call__(self, model: nn.Module) -> dict[str, float]:
        """What the model's decisions do there."""
        with torch.no_grad():
            return decision_rates(model(self.x).reshape(-1), self.y, self.groups)


def decision_rates(scores: Tensor, labels: Tensor, groups: Tensor) -> dict[str, float]:
    """True counts at a probability of one half: accuracy, gaps, and the ratio of coverages.

    Without groups: accuracy, misses and false alarms.

    Examples:
        >>> scores, labels = torch.tensor([1.0, -1.0, 1.0, 1.0]), torch.tensor([1, 0, 0, 1])
        >>> groups = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> decision_rates(scores, labels, groups)
        {'accuracy': 0.75, 'coverage gap': 0.5, 'tpr gap': 0.0, 'impact ratio': 0.5}
    """
    decided, positive = (scores > 0).to(groups.dtype), (labels > 0).to(groups.dtype)
    accuracy = float((decided == positive).float().mean())
    if groups.shape[1] == 1:
        missed = float(_means(1 - decided, positive[:, None]))
        return {
            "accuracy": accuracy,
            "fnr": missed,
            "fpr": float(_means(decided, 1 - positive[:, None])),
        }
    coverages = _means(decided, groups)
    recalls = _means(decided, groups * positive[:, None])
    most = float(coverages.max())
    return {
        "accuracy": accuracy,
        "coverage gap": float(coverages.max() - coverages.min()),
        "tpr gap": float(recalls.max() - recalls.min()),
        "impact ratio": float(coverages.min()) / most if most > 0 else 1.0,
    }


def _gap_between(values: Tensor, groups: Tensor) -> Tensor:
    means = _means(values, groups)
    return _rounded((means.max() - means.min()).square())


def _rounded(square: Tensor) -> Tensor:
    """The root of a square, without the kink at zero."""
    return (square + _ROUND**2).sqrt() - _ROUND


def _means(values: Tensor, groups: Tensor) -> Tensor:
    """The mean of each group; a group that is absent has the mean of all."""
    counts = groups.sum(0)
    sums = (values[:, None] * groups).sum(0)
    return torch.where(counts > 0, sums / counts.clamp(min=1e-12), values.mean())
