"""Methods by name for goals about several classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.solvers import Implicit
from setpoint.solvers.classes.adjusted import Adjusted
from setpoint.solvers.classes.losses import class_cross_entropy, class_focal
from setpoint.train.class_samplers import Classwise
from setpoint.train.methods import Method
from setpoint.train.samplers import Batch, Shuffled


@dataclass(frozen=True)
class EvenClasses:
    """Every class has the same part of every batch, and nobody is told: the classic resampling."""

    size: int

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """So many batches of the examples that have these labels."""
        drawn = Classwise(self.size, least=self.size).draw(labels, steps=steps, seed=seed)
        return (Batch(rows, None) for rows, _ in drawn)


def balanced_cross_entropy(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy in which every class of the batch weighs the same."""
    own = torch.ones_like(scores[:, 0]) if weights is None else weights.to(scores.dtype)
    totals = own.new_zeros(scores.shape[1]).index_add(0, labels, own)
    return class_cross_entropy(scores, labels, own / totals[labels])


CLASS_METHODS: dict[str, Method] = {
    "implicit": Method(lambda problem, steps: Implicit(problem, steps=steps), Shuffled),
    "cross_entropy": Method(lambda _problem, _steps: class_cross_entropy, Shuffled),
    "focal": Method(lambda _problem, _steps: class_focal, Shuffled),
    "adjusted": Method(lambda problem, _steps: Adjusted(problem), Shuffled),
    "weighted": Method(lambda _problem, _steps: balanced_cross_entropy, Classwise),
    "resampled": Method(lambda _problem, _steps: class_cross_entropy, EvenClasses),
}
