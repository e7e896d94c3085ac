"""Cross-entropy as people train with it: plain, weighted by class, or focal, then a threshold.

The loss does not know the operating point. The model is evaluated afterwards, at the exact
threshold of the problem on the scores that came out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint._checks import at_least_zero, positive
from setpoint.batch import check_labels, check_scores, check_weights
from setpoint.distributed import Reduction
from setpoint.losses import attach, example_weights
from setpoint.problems import Problem
from setpoint.solvers.additive import AdditiveCriterion
from setpoint.solvers.base import LastBatch
from setpoint.solvers.pointwise import (
    cross_entropy,
    cross_entropy_gradient,
    focal,
    focal_gradient,
    losses_of,
)

Balance = float | Literal["balanced"]


@dataclass(frozen=True)
class SummedBatch:
    """The last batch of all ranks, as far as sums tell of it."""

    loss: Tensor
    shares: Tensor  # what a unit of weight counts for in the loss, by class and output [2, c]
    examples: tuple[int, int]  # positives and negatives
    flat: bool

    def stats(self, _problem: Problem | None) -> dict[str, Any]:
        """Plain numbers, with the statuses of :class:`setpoint.solvers.base.LastBatch`."""
        found: dict[str, Any] = {"status": "trained", "loss": float(self.loss)}
        for name, count in zip(("positives", "negatives"), self.examples, strict=True):
            if not count:
                return {**found, "status": f"no {name} in the batch"}
        return {**found, "status": "flat: all scores are equal"} if self.flat else found


@dataclass(frozen=True)
class ClassSums:
    """The rows of a rank, ``[n, c]``, and what is added up of them."""

    scores: Tensor
    labels: Tensor
    weights: Tensor
    positives: Balance
    gamma: float

    @classmethod
    def of(
        cls, scores: Tensor, labels: Tensor, weights: Tensor | None, **options: Any
    ) -> ClassSums:
        """From checked rows; one weight per example stands for all its outputs."""
        rows, columns = len(scores), math.prod(scores.shape[1:])
        own = scores.new_ones(rows, columns)
        if weights is not None:
            own = weights.to(scores.dtype).reshape(rows, -1 if rows else 1).expand(rows, columns)
        return cls(scores.reshape(rows, columns), labels.reshape(rows, columns), own, **options)

    def numbers(self) -> Tensor:
        """Losses and weights of both classes by output, ``4 c``; heads; what tells flat scores."""
        losses = losses_of(self.scores, self.labels, self.gamma).double()
        own, yes = self.weights.double(), self.labels > 0
        sums = [(x * of_class).sum(0) for x in (losses * own, own) for of_class in (yes, ~yes)]
        heads = torch.stack([yes.sum(), (~yes).sum()]).double()
        return torch.cat([*sums, heads, self._levels()])

    def _levels(self) -> Tensor:
        """Ranks with rows, those with different scores, and the first score with its square."""
        first = self.scores.reshape(-1)[:1].double()
        if not len(first):
            return self.scores.new_zeros(4).double()
        differ = (self.scores.double() != first).any().double()
        return torch.stack([torch.ones_like(differ), differ, first[0], first[0] ** 2])

    def of_all(self, totals: Tensor) -> SummedBatch:
        """The batch of all ranks."""
        columns = self.scores.shape[1]
        losses, weights = totals[: 4 * columns].reshape(2, 2, columns)
        yes, no, ranks, differ, total, squares = totals[4 * columns :].tolist()
        if self.positives == "balanced":
            counts = 1 / (weights + (weights == 0))
        else:
            counts = torch.tensor([[self.positives], [1.0]]).to(weights).expand_as(weights)
        whole = (weights * counts).sum()
        shares = counts / (whole + (whole == 0))
        apart = ranks * squares - total**2  # zero only for equal numbers, except for rounding
        flat = not differ and apart <= 1e-12 * ranks * squares and yes + no > 1
        return SummedBatch((losses * shares).sum(), shares, (int(yes), int(no)), flat)

    def loss(self, batch: SummedBatch, scores: Tensor) -> Tensor:
        """The value of all ranks, with the gradient of the own rows attached."""
        value = batch.loss.to(self.scores.dtype)
        if not (torch.is_grad_enabled() and scores.requires_grad):
            return value
        if not len(scores):
            return attach(scores, value, torch.zeros_like(scores))
        if self.gamma:
            means = focal_gradient(self.scores, self.labels, gamma=self.gamma)
        else:
            means = cross_entropy_gradient(self.scores, self.labels)
        slopes = means * means.numel()
        up, down = batch.shares.to(slopes)
        slopes = slopes * self.weights * torch.where(self.labels > 0, up, down)
        return attach(scores, value, slopes.reshape(scores.shape))


class CrossEntropy(AdditiveCriterion[ClassSums]):
    """Cross-entropy as a criterion: ``criterion(model(x), y).backward()``.

    Args:
        problem: What the model is evaluated by; :meth:`stats` reports it at the exact threshold of
            the last batch. Training does not look at it.
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
        self._last: LastBatch | SummedBatch | None = None

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
        self._last = LastBatch(loss.detach(), scores.detach(), labels, given, groups)
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
