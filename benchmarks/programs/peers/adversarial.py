"""AP-Perf (Fathony and Kolter 2020): the F score as a game against an adversary, solved by ADMM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ap_perf import Confusion_Matrix, MetricLayer, PerformanceMetric
from torch import Tensor


class F1(PerformanceMetric):
    """2 TP / (AP + PP); both empty count as 1, one empty as 0."""

    def define(self, C: Confusion_Matrix) -> Any:
        """The metric in AP-Perf's own algebra."""
        return (2 * C.tp) / (C.ap + C.pp)


def layer(**solver: Any) -> MetricLayer:
    """AP-Perf's loss; ``max_iter`` is 100 unless given."""
    metric = F1()
    metric.initialize()
    metric.enforce_special_case_positive()
    return MetricLayer(metric, solver)


def build(metric: str, labels: Tensor, **solver: Any) -> Callable[[Tensor], Tensor]:
    """A loss of scores: the game's, which is another objective than the program's."""
    if metric != "f1":
        raise ValueError(f"AP-Perf is timed on f1; got {metric!r}.")
    criterion, target = layer(**solver), labels.float()
    criterion(target - 0.5, target)  # compiles, and prepares its matrices for this size
    return lambda scores: criterion(scores.float(), target)[0]


def distribution(scores: Tensor, labels: Tensor, **solver: Any) -> Any:
    """The adversary's ``q_il`` at the end of AP-Perf's iterations, ``[n, n]``.

    AP-Perf keeps it in a private method; its public ones give only the marginals.
    """
    metric = layer().metric
    repeated = np.tile(scores.detach().numpy(), (len(scores), 1)).T
    return metric._PerformanceMetric__solve_admm_q(repeated, labels.numpy(), **solver)[0]
