"""What the demo compares: three goals, two models, one budget for everybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from setpoint.problems import Problem, fnr_at_fpr, pr_auc, precision_at_recall

FEATURES = 16
HELD_FPR = 0.01


@dataclass(frozen=True)
class Goal:
    """What a model is judged by, and the words for it."""

    name: str
    problem: Problem

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is the better one."""
        return self.problem.maximize


@dataclass(frozen=True)
class Model:
    """A model to train, and the rate of Adam that suits it with either loss."""

    name: str
    title: str
    build: Callable[[], nn.Module]
    learning_rate: float


@dataclass(frozen=True)
class Plan:
    """One budget for both methods: steps, batches, learning rates, initial weights, averaging."""

    seeds: int = 3
    steps: int = 1000  # as in the lab that found the defaults; under a minute on two cores
    batch_size: int = 512

    def quick(self) -> Plan:
        """Enough steps to see that everything runs, too few to learn from."""
        return replace(self, steps=30)


def _linear() -> nn.Module:
    return nn.Linear(FEATURES, 1)


def _network() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))


GOALS = (
    Goal("FNR at FPR 1 %", fnr_at_fpr(HELD_FPR)),
    Goal("precision at recall 95 %", precision_at_recall(0.95)),
    Goal("PR-AUC, recall 95-100 %", pr_auc(recall=(0.95, 1.0))),
)
CORNER = GOALS[0]
"""The goal whose curves are drawn."""
MODELS = (
    Model("linear", "Linear model", _linear, 0.03),
    Model("MLP 64", "MLP, 64 hidden units", _network, 0.01),
)
