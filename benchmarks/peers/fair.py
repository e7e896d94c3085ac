"""A goal with groups, for what a step costs: few errors, and groups that are accepted alike.

fairret adds a penalty to cross-entropy and has no bounds; how far its rows get is in
docs/groups.md (`python -m benchmarks.fairness`).
"""

from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from benchmarks.peers.learners import Learner, TorchLearner, ours
from benchmarks.peers.roster import Maker, Task
from setpoint import Implicit, Lagrangian, Problem, error
from setpoint.fairness import demographic_parity

FAIR = "error, coverage gap 5 %"
PROBLEM = Problem(minimize=error, subject_to=demographic_parity(0.05, group=[0, 1]))


def members(x: Tensor) -> Tensor:
    """Who is in which of two groups: by the sign of the first feature."""
    return (x[:, 0] > 0).long()


def _grouped(make: Callable[[int], nn.Module]) -> Maker:
    def made(model: nn.Sequential, t: Task) -> Learner:
        criterion, groups = make(t.steps), members(t.x)

        def loss(scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
            found: Tensor = criterion(scores[:, 0], labels, groups=groups[rows])
            return found

        optimizer = torch.optim.Adam(model.parameters(), t.rate)
        return TorchLearner(model, t.x, t.y, optimizer, loss)

    return made


def _plain(model: nn.Sequential, t: Task) -> Learner:
    return ours("cross-entropy", model, t.x, t.y, PROBLEM, t.steps, t.rate)


def _fairret(model: nn.Sequential, t: Task) -> Learner:
    from benchmarks.peers.with_fairret import learner

    hot = torch.nn.functional.one_hot(members(t.x), 2).float()
    return learner(model, t.x, t.y, hot, t.rate)


def methods() -> dict[str, Maker]:
    """All that are installed."""
    found = {
        "cross-entropy": _plain,
        "Implicit": _grouped(lambda steps: Implicit(PROBLEM, steps=steps)),
        "Lagrangian": _grouped(lambda _: Lagrangian(PROBLEM)),
        "proxy-Lagrangian": _grouped(lambda _: Lagrangian(PROBLEM, proxy=True)),
    }
    return found | ({"fairret": _fairret} if find_spec("fairret") else {})
