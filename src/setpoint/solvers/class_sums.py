"""Cross-entropy of all ranks from sums: losses and weights of both classes, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.problems import Problem
from setpoint.solvers.baselines import cross_entropy_gradient, focal_gradient, losses_of
from setpoint.solvers.mix import attach

Balance = float | Literal["balanced"]


@dataclass(frozen=True)
class SummedBatch:
    """The last batch of all ranks, as far as sums tell of it."""

    loss: Tensor
    shares: Tensor  # what a unit of weight counts for in the loss, by class and output [2, c]
    examples: tuple[int, int]  # positives and negatives
    flat: bool

    def stats(self, _problem: Problem | None) -> dict[str, Any]:
        """Plain numbers, in the words of :class:`setpoint.solvers.afterwards.Batch`."""
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
        """From checked rows; one weight an example stands for all its outputs."""
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
        apart = ranks * squares - total**2  # zero only for equal numbers, but for rounding
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
