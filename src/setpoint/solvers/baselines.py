"""Cross-entropy as people train with it: plain, weighted by class, or focal, then a threshold.

The loss does not know the operating point. The model is evaluated afterwards, at the exact
threshold of the problem on the scores that came out.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import at_least_zero, positive
from setpoint.batch import check_labels, check_scores, check_weights
from setpoint.distributed import Reduction
from setpoint.losses import exact_type, example_weights
from setpoint.losses.base import check_loss_scores
from setpoint.losses.log_likelihood import cross_entropy, focal
from setpoint.problems import GoalLike, as_problem
from setpoint.solvers.base import LossCriterion

Balance = float | Literal["balanced"]


class CrossEntropy(LossCriterion):
    """Cross-entropy as a criterion: ``criterion(model(x), y).backward()``.

    Args:
        problem: What the model is evaluated by; :meth:`stats` reports it at the exact threshold of
            the last batch. Training does not look at it.
        positives: What a positive counts for, a negative counting 1; ``"balanced"``: both classes
            weigh the same in every batch.
        gamma: Above 0 this is the focal loss: examples count by how wrong they still are.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Examples:
        >>> from setpoint import CrossEntropy, fnr_at_fpr
        >>> criterion = CrossEntropy(fnr_at_fpr(0.5), positives="balanced")
        >>> scores = torch.tensor([2.0, 1.0, 0.5, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 0, 1, 0])).backward()
        >>> criterion.stats()["threshold"], criterion.stats()["hard_objective"]
        (-1.0, 0.0)
    """

    _options = ("positives", "gamma")

    def __init__(
        self,
        problem: GoalLike | None = None,
        *,
        positives: Balance = 1.0,
        gamma: float = 0.0,
        reduction: Reduction | None = None,
    ) -> None:
        if problem is not None:
            problem = as_problem(problem, "CrossEntropy (its weight of positives is positives=)")
        if isinstance(positives, str) and positives != "balanced":
            raise ValueError(f"positives must be 'balanced' or a number; got {positives!r}.")
        super().__init__(problem, reduction)
        self.positives: Balance = (
            "balanced" if positives == "balanced" else positive(positives, "positives")
        )
        self.gamma = at_least_zero(gamma, "gamma")

    def measure(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The weighted mean over examples and outputs."""
        check_loss_scores(scores)
        labels = labels.reshape(scores.shape) if labels.numel() == scores.numel() else labels
        given = None if weights is None else example_weights(weights, scores)
        exact = scores.to(exact_type(scores))
        if not torch.compiler.is_compiling():
            check_scores(exact.detach())
            check_labels(labels, scores)
            if given is not None:
                check_weights(given, given)
        own = self._weights(exact, labels, given)
        if self.gamma:
            return focal(exact, labels, own, gamma=self.gamma)
        return cross_entropy(exact, labels, own)

    def _weights(self, scores: Tensor, labels: Tensor, given: Tensor | None) -> Tensor | None:
        """What every example counts for: its own weight times that of its class."""
        if self.positives == 1:
            return given
        own = torch.ones_like(scores) if given is None else given.to(scores.dtype)
        own = own.reshape(len(scores), -1).expand(len(scores), scores[0].numel())
        own = own.reshape(scores.shape)
        yes = labels > 0
        if self.positives == "balanced":
            totals = [(own * of_class).sum(0) for of_class in (yes, ~yes)]
            up, down = (1 / (total + (total == 0)) for total in totals)
        else:
            up, down = (torch.as_tensor(x).to(own) for x in (self.positives, 1.0))
        return own * torch.where(yes, up, down)
