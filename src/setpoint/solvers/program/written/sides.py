"""The two classes of a batch, as the programs are written with them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from setpoint.batch import describe
from setpoint.solvers.mix import example_weights
from setpoint.solvers.program.inputs import EVERYONE, check_tensor
from setpoint.thresholds import read


@dataclass(frozen=True)
class Sides:
    """The examples of both classes that have weight: scores in the graph, float64."""

    high: Tensor
    low: Tensor
    high_weights: Tensor
    low_weights: Tensor

    @property
    def differences(self) -> Tensor:
        """``f_i - f_j`` for every pair, positives in the outer order."""
        return (self.high[:, None] - self.low).reshape(-1)

    @property
    def positives(self) -> Tensor:
        """The weight of all positives, ``[1]``."""
        return self.high_weights.sum().reshape(1)

    @property
    def pair_weights(self) -> Tensor:
        """What each pair counts in the mean."""
        high, low = self.high_weights, self.low_weights
        return (high[:, None] * low).reshape(-1) / (high.sum() * low.sum())


def sides(scores: Tensor, labels: Tensor, weights: Tensor | None) -> Sides:
    """One output's batch, checked as the losses check it; both classes must be there."""
    check_tensor(scores)
    if weights is not None:
        weights = example_weights(weights, scores)
    batch = read(EVERYONE, scores, labels, weights)
    if len(batch.scores) != 1:
        raise ValueError(
            f"A program is written for one output; got {len(batch.scores)}. "
            "Write one for each column of the scores."
        )
    if not batch.totals.all():
        there = describe(*batch.totals[0].tolist())
        raise ValueError(f"The program needs both classes; got {there}.")
    return split(scores.reshape(-1).double(), *batch.columns[0].unbind(-1))


def split(scores: Tensor, positives: Tensor, negatives: Tensor) -> Sides:
    """The two classes by their weights."""
    high, low = positives > 0, negatives > 0
    return Sides(scores[high], scores[low], positives[high], negatives[low])
