"""Cross-entropy as people train with it: plain, weighted by class, or focal, then a threshold.

The loss does not know the operating point. What it is judged by comes afterwards: the exact
threshold of the problem on the scores that came out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint._checks import at_least_zero, positive
from setpoint.batch import check_labels, check_scores, check_weights
from setpoint.distributed import Reduction
from setpoint.problems import Problem
from setpoint.solvers.adding import Adding
from setpoint.solvers.afterwards import Batch
from setpoint.solvers.baselines import cross_entropy, focal
from setpoint.solvers.class_sums import Balance, ClassSums, SummedBatch
from setpoint.solvers.mix import example_weights


class CrossEntropy(Adding[ClassSums]):
    """Cross-entropy as a criterion: ``criterion(model(x), y).backward()``.

    Args:
        problem: What the model will be judged by; :meth:`stats` reports it at the exact threshold
            of the last batch. Training does not look at it.
        positives: What a positive counts for, a negative counting 1; ``"balanced"``: both classes
            weigh the same in every batch.
        gamma: Above 0 this is the focal loss: examples count by how wrong they still are.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Example:
        >>> from setpoint import CrossEntropy, fnr_at_fpr
        >>> criterion = CrossEntropy(fnr_at_fpr(0.5), positives="balanced")
        >>> scores = torch.tensor([2.0, 1.0, 0.5, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 0, 1, 0])).backward()
        >>> criterion.stats()["threshold"], criterion.stats()["hard_objective"]
        (-1.0, 0.0)
    """

    def __init__(
        self,
        problem: Problem | None = None,
        *,
        positives: Balance = 1.0,
        gamma: float = 0.0,
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__()
        self.reduction = reduction
        if problem is not None and not isinstance(problem, Problem):
            raise TypeError(
                "CrossEntropy takes a Problem, such as fnr_at_fpr(0.01), or none; "
                f"got {problem!r}. The weight of positives is positives=."
            )
        if isinstance(positives, str) and positives != "balanced":
            raise ValueError(f"positives must be 'balanced' or a number; got {positives!r}.")
        self.problem = problem
        self.positives: Balance = (
            "balanced" if positives == "balanced" else positive(positives, "positives")
        )
        self.gamma = at_least_zero(gamma, "gamma")
        self._last: Batch | SummedBatch | None = None

    def forward(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Any = None
    ) -> Tensor:
        """The loss of a batch; the arguments are those of :class:`setpoint.Implicit`."""
        if self._shared is not None:
            own, totals = self._shared
            batch = own.of_all(totals)
            if not sum(batch.examples):
                return scores.sum()
            self._last = batch
            return own.loss(batch, scores)
        if scores.numel() == 0:
            return scores.sum()
        exact, labels, given = _checked(scores, labels, weights)
        shares = self._weights(exact, labels, given)
        if self.gamma:
            loss = focal(exact, labels, shares, gamma=self.gamma)
        else:
            loss = cross_entropy(exact, labels, shares)
        self._last = Batch(loss.detach(), scores.detach(), labels, given, groups)
        return loss

    def _adds(self) -> bool:
        """Without a problem no threshold is asked for, and nothing needs to be sorted."""
        return self.problem is None

    def _own(
        self, scores: Tensor, labels: Any, *, weights: Any = None, groups: Any = None
    ) -> ClassSums:
        exact, labels, given = _checked(scores, labels, weights)
        return ClassSums.of(exact, labels, given, positives=self.positives, gamma=self.gamma)

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

    @property
    def status(self) -> str:
        """How the last batch went, in words."""
        return str(self.stats()["status"])

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers, with the exact threshold of the problem if it has one.

        Of all ranks' examples. Nothing is computed before it is asked for.
        """
        if self._last is None:
            return {"status": "not started"}
        return self._last.stats(self.problem)

    def __repr__(self) -> str:
        what = "" if self.problem is None else f"{self.problem}, "
        options = f"positives={self.positives!r}, gamma={self.gamma!r}"
        return f"{type(self).__name__}({what}{options})"


def _checked(scores: Tensor, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scores in single precision at least, labels in their shape, and weights."""
    labels = torch.as_tensor(labels, device=scores.device)
    labels = labels.reshape(scores.shape) if labels.numel() == scores.numel() else labels
    given = None if weights is None else example_weights(weights, scores)
    if not torch.compiler.is_compiling():
        check_scores(scores.detach())
        check_labels(labels, scores)
        if given is not None:
            check_weights(given, given)
    return scores.to(torch.promote_types(scores.dtype, torch.float32)), labels, given
