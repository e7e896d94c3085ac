"""All methods by name, ours and the peers', and who can express which goal.

A peer that is not installed is left out.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.peers.learners import Learner, TorchLearner, one_column, ours, shuffled
from benchmarks.peers.soft import mean_difference, soft_f1, soft_precision_and_recall
from setpoint import Problem, fnr_at_fpr, pr_auc

GOALS: dict[str, Problem] = {
    "FNR at FPR 5 %": fnr_at_fpr(0.05),
    "PR-AUC in [0.95, 1]": pr_auc(recall=(0.95, 1.0), points=5),
}
ONE, FIVE = GOALS
PACKAGES = {
    "TFCO": "tensorflow_constrained_optimization",
    "Cooper": "cooper",
    "LibAUC": "libauc",
    "fairret": "fairret",
}


class Task(NamedTuple):
    """What a learner is made for."""

    x: Tensor
    y: Tensor
    problem: Problem
    size: int  # of a batch; 0: all rows
    steps: int
    rate: float


Maker = Callable[[nn.Sequential, Task], Learner]


def _our(name: str) -> Maker:
    return lambda model, t: ours(name, model, t.x, t.y, t.problem, t.steps, t.rate)


def _by_hand(loss: Callable[..., Tensor]) -> Maker:
    return lambda model, t: TorchLearner(
        model, t.x, t.y, torch.optim.Adam(model.parameters(), t.rate), one_column(loss)
    )


def _cooper(proxy: bool) -> Maker:
    def make(model: nn.Sequential, t: Task) -> Learner:
        from benchmarks.peers.with_cooper import CooperLearner

        return CooperLearner(model, t.x, t.y, t.problem, t.rate, proxy=proxy)

    return make


def _libauc(name: str, **settings: float) -> Maker:
    def make(model: nn.Sequential, t: Task) -> Learner:
        from benchmarks.peers import with_libauc

        return with_libauc.learner(name, model, t.x, t.y, t.rate, **settings)

    return make


def _tfco(**options: Any) -> Maker:
    def make(model: nn.Sequential, t: Task) -> Learner:
        from benchmarks.peers.with_tfco import TFCOLearner

        size = min(t.size or len(t.y), len(t.y))
        return TFCOLearner(model, t.x, t.y, t.problem, t.rate, size=size, **options)

    return make


METHODS: dict[str, Maker] = {
    "cross-entropy": _our("cross-entropy"),
    "Implicit": _our("Implicit"),
    "ICO as published": _our("ico"),
    "LastLayer": _our("LastLayer"),
    "Lagrangian": _our("Lagrangian"),
    "proxy-Lagrangian": _our("proxy-Lagrangian"),
    "TFCO Lagrangian": _tfco(),
    "TFCO proxy-Lagrangian": _tfco(proxy=True),
    "TFCO Lagrangian, eager": _tfco(eager=True),
    "Cooper": _cooper(proxy=False),
    "Cooper, proxy": _cooper(proxy=True),
    "LibAUC AUCM + PESG": _libauc("AUCM + PESG"),
    "LibAUC pAUC-CVaR + SOPA": _libauc("pAUC-CVaR + SOPA", beta=0.05),
    "LibAUC AP + SOAP": _libauc("AP + SOAP"),
    "soft F1": _by_hand(soft_f1),
    "soft F4": _by_hand(soft_precision_and_recall),
    "mean difference": _by_hand(mean_difference),
}


def installed(name: str) -> bool:
    """Whether the package of this method is there; ours always is."""
    needs = [package for peer, package in PACKAGES.items() if name.startswith(peer)]
    return all(find_spec(package) is not None for package in needs)


def expressing(goal: str) -> list[str]:
    """The methods that have a form of this goal, or their nearest to it, and are installed."""
    other = {ONE: ("AP + SOAP", "soft F4"), FIVE: ("pAUC-CVaR", "AUCM")}[goal]
    known = [name for name in METHODS if not any(part in name for part in other)]
    return [name for name in known if installed(name)]


def rows_for(name: str, t: Task, seed: int) -> Iterator[Tensor]:
    """The batches a method is trained on: LibAUC's losses by its own sampler."""
    if name.startswith("LibAUC"):
        from benchmarks.peers import with_libauc

        size = min(t.size or len(t.y), len(t.y))
        return with_libauc.batches(t.y, size, t.steps, seed)
    return shuffled(t.y, t.size, t.steps, seed)
