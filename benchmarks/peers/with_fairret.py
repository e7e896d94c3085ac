"""fairret 0.1.3: a fairness term that is added to cross-entropy, as in its quick start."""

import torch
from fairret.loss import NormLoss
from fairret.statistic import PositiveRate, TruePositiveRate
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.peers.learners import TorchLearner

STATISTICS = {"coverage": PositiveRate, "tpr": TruePositiveRate}


def learner(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    groups: Tensor,
    rate: float,
    *,
    statistic: str = "coverage",
    strength: float = 1.0,
) -> TorchLearner:
    """Cross-entropy plus ``strength`` times the gap of a statistic between groups.

    ``groups`` is one-hot, ``[n, groups]``, float, as fairret expects it.
    """
    penalty = NormLoss(STATISTICS[statistic]())
    needs_labels = statistic == "tpr"

    def loss(scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        target = labels.to(scores.dtype)[:, None]
        more = (target,) if needs_labels else ()
        fair = penalty(scores, groups[rows], *more)
        return binary_cross_entropy_with_logits(scores, target) + strength * fair

    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    return TorchLearner(model, x, y, optimizer, loss)
