"""The table of a structural hinge, as an operator that a compiler does not look into.

How long its queues are depends on the labels, which no graph of fixed shapes can hold. Metrics
are known to the operator by number: a compiler passes tensors and numbers only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.rates import Expression
from setpoint.solvers.program.inputs import batch_loss
from setpoint.solvers.program.structural import by_output, structural_loss

_metrics: list[Expression] = []


class Structural:
    """The structural hinge of a metric, as :class:`setpoint.Program` calls it."""

    def __init__(self, metric: Expression) -> None:
        self.metric = metric
        if metric not in _metrics:
            _metrics.append(metric)
        self.number = _metrics.index(metric)

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        margin: float = 1.0,
    ) -> Tensor:
        """See :func:`setpoint.structural_loss`."""
        if not torch.compiler.is_compiling():
            return structural_loss(
                scores, labels, metric=self.metric, weights=weights, margin=margin
            )

        def measure(scores: Tensor, *classes: Tensor) -> tuple[Tensor, Tensor]:
            loss, gradient = _worst(scores / margin, *classes, self.number)
            return loss, gradient / margin

        return batch_loss(measure, scores, labels, weights)

    def __reduce__(self) -> tuple[type[Structural], tuple[Expression]]:
        """Numbers differ between processes: a copy asks for its own."""
        return Structural, (self.metric,)


@torch.library.custom_op("setpoint::structural_worst", mutates_args=())
def _worst(u: Tensor, positives: Tensor, negatives: Tensor, number: int) -> tuple[Tensor, Tensor]:
    return by_output(_metrics[number], u, positives, negatives)


@_worst.register_fake
def _(u: Tensor, positives: Tensor, negatives: Tensor, number: int) -> tuple[Tensor, Tensor]:
    return u.new_empty(len(u)), torch.empty_like(u)
