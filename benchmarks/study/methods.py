"""What is trained: ours, and the baselines, each with its grid; all at the same three rates."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.study.metrics import FPR, GOALS
from setpoint import Implicit, Stratified, roc_auc
from setpoint.solvers import METHODS, Lagrangian, Pairwise, cross_entropy, focal
from setpoint.train import Shuffled

WEIGHTS = (0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0)
TEMPERATURES = (0.5, 1.0, 5.0)  # the grid of the paper on implicit thresholds
RATES = {True: (0.01, 0.03, 0.1), False: (0.003, 0.01, 0.03)}  # linear, networks
OURS = "implicit"
PLAIN = "cross-entropy"
Loss = Callable[..., Tensor]


@dataclass(frozen=True)
class Way:
    """A loss for a goal (or one for all), its batches, and its own settings."""

    loss: Callable[[str, int, float], Loss]
    sampler: Callable[[int], Any] = Shuffled
    direct: bool = False
    settings: tuple[float, ...] = (0.0,)
    goals: tuple[str, ...] = tuple(GOALS)
    takes: str = "weights"  # the name by which the loss takes the sampler's weights


def _weighted(_goal: str, _steps: int, weight: float) -> Loss:
    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(scores, labels, weights=torch.where(labels > 0, weight, 1.0))

    return loss


def _partial_area(goal: str, _steps: int, _setting: float) -> Loss:
    """Pairs of every positive and the hardest negatives: the partial area up to the rate."""
    return Pairwise(roc_auc(fpr=(0.0, FPR[goal])) if goal in FPR else roc_auc())


WAYS: dict[str, Way] = {
    "weighted": Way(_weighted, settings=WEIGHTS),  # weight 1 is plain cross-entropy
    PLAIN: Way(lambda *_: cross_entropy),  # one of the weighted, alone: for the exploration
    "focal": Way(lambda *_: focal),
    "resampled": Way(lambda *_: cross_entropy, METHODS["resampled"].sampler),
    "tfco": Way(
        lambda goal, *_: Lagrangian(GOALS[goal], proxy=True), METHODS["tfco"].sampler, direct=True
    ),
    "partial area": Way(_partial_area, METHODS["pairwise"].sampler, direct=True),
    "ico": Way(
        lambda goal, _steps, t: Implicit.as_published(
            GOALS[goal], temperature=t, correct_every=10, correction_batches=1
        ),
        direct=True,
        settings=TEMPERATURES,
        goals=(*FPR, "pr95"),  # the paper follows one threshold
    ),
    OURS: Way(
        lambda goal, steps, _: Implicit(GOALS[goal], steps=steps),
        Stratified,
        direct=True,
        takes="resampling",
    ),
}


class Column(NamedTuple):
    """One model of a stack."""

    way: str
    goal: str | None
    setting: float
    rate: float


def columns(name: str, goals: list[str], linear: bool) -> Iterator[Column]:
    """Every model of a way; those of one loss stand beside each other."""
    way = WAYS[name]
    wanted = [goal for goal in goals if goal in way.goals] if way.direct else [None]
    for goal in wanted:
        for setting in way.settings:
            for rate in RATES[linear]:
                yield Column(name, goal, setting, rate)
