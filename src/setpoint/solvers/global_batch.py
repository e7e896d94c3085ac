"""Any loss as one of the global batch: a mean over ranks of means is not the mean over examples."""

from __future__ import annotations

from torch import Tensor

from setpoint.distributed import Reduction
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.mix import Loss, value_of


class GlobalBatch(BatchCriterion):
    """A loss function as a criterion that sees the examples of all ranks.

    In one process it is the loss itself. On several, every rank evaluates it on all scores and
    passes on the gradient of its own.

    Args:
        loss: Called ``loss(scores, labels)``, with ``weights=`` if there are any; such as
            :func:`setpoint.losses.auc_loss` or ``nn.BCEWithLogitsLoss()``.
        reduction: What becomes of the ranks' gradients: ``"mean"``, ``"sum"`` or ``"none"``;
            :meth:`attach` finds it out.

    Example:
        >>> import torch
        >>> from setpoint import GlobalBatch
        >>> from setpoint.losses import auc_loss
        >>> criterion = GlobalBatch(auc_loss)           # then criterion.attach(wrapped_model)
        >>> criterion(torch.tensor([2.0, 0.5, 0.0]), torch.tensor([1, 1, 0])).item()
        0.25
    """

    def __init__(self, loss: Loss, *, reduction: Reduction | None = None) -> None:
        super().__init__()
        self.loss = loss
        self.reduction = reduction

    def forward(self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch."""
        if scores.numel() == 0:
            return scores.sum()
        return value_of(self.loss, scores, labels, weights)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.loss, '__qualname__', repr(self.loss))})"
