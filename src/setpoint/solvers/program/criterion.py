"""Train for a problem by the metric loss that fits it: ``Program(problem)``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.distributed import Reduction
from setpoint.problems import Problem
from setpoint.solvers.afterwards import Batch
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.program.fitting import fitting_loss


class Program(BatchCriterion):
    """A criterion that bounds a problem's objective by a linear program, solved by sorting.

    It fits areas under the ROC curve (:func:`partial_auc_loss`), precision or the false positive
    rate at a recall and the miss rate at a false positive rate (:func:`precision_at_recall_loss`),
    F scores, the Jaccard index and their kin at their best threshold (:func:`f_score_loss`), and by
    the structural hinge any other metric without a constraint that is best when every decision is
    right. Any other problem is refused.

    Args:
        problem: What is wanted.
        margin: How far, in units of the scores, a pair or a decision has to be right to be safe.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Example:
        >>> import torch
        >>> from setpoint import Program, roc_auc
        >>> criterion = Program(roc_auc(fpr=(0, 0.5)))
        >>> criterion(torch.tensor([2.0, 0.5, 0.0, -3.0]), torch.tensor([1, 1, 0, 0])).item()
        0.25
    """

    def __init__(
        self, problem: Problem, *, margin: float = 1.0, reduction: Reduction | None = None
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.problem = problem
        self.margin = positive(margin, "margin")
        self._loss = fitting_loss(problem)
        self._last: Batch | None = None

    def forward(self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch.

        Args:
            scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs, ``[n, K]``
                for an area of classes.
            labels: 0 or 1, in the shape of the scores; of classes the column, ``[n]``.
            weights: Optional, one an example; weight 2 is two copies, weight 0 is absent.
        """
        loss = self._loss(scores, labels, weights=weights, margin=self.margin)
        if scores.numel():
            labels = torch.as_tensor(labels, device=scores.device)
            if self.problem.kind != "classes":
                labels = labels.reshape(scores.shape)
            self._last = Batch(loss.detach(), scores.detach(), labels, weights)
        return loss

    @property
    def status(self) -> str:
        """How the last batch went, in words."""
        return str(self.stats()["status"])

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers, with the problem's exact threshold on it."""
        return {"status": "not started"} if self._last is None else self._last.stats(self.problem)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.problem}, margin={self.margin!r})"
