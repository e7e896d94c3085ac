"""Cross-entropy that a goal leans on: logit adjustment (Menon et al., 2021) for any goal.

Plain cross-entropy learns how likely each class is, and a frequent class wins. Added to the scores
in the loss, and only there, minus the logarithms of the goal's class weights make the scores
themselves those of the goal: for balanced error they are the logarithms of the class shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.class_data import class_names_of, members_of
from setpoint.problems import Problem
from setpoint.solvers.base import BatchCriterion
from setpoint.solvers.classes.goal_weights import log_weights
from setpoint.solvers.classes.losses import class_cross_entropy, cross_entropy_slopes
from setpoint.solvers.classes.opaque import offsets_of
from setpoint.solvers.enrolled import Enrolled
from setpoint.thresholds import State

UNSEEN = 0.5
"""How many examples of each class are taken as seen before the first: no share is zero."""


class Adjusted(Enrolled, BatchCriterion, State):
    """Cross-entropy of ``score - log(weight of the class)``; goals that weigh none leave it plain.

    The shares of the classes are those of all batches so far, weights included.

    Args:
        problem: Whose class weights are meant.
        classes: What the columns of the scores are called; see :class:`setpoint.Implicit`.

    Example:
        >>> from setpoint import Problem, macro, recall
        >>> criterion = Adjusted(Problem(maximize=macro(recall)))
        >>> scores = torch.zeros(4, 3, requires_grad=True)
        >>> criterion(scores, torch.tensor([0, 0, 1, 2])).backward()
        >>> criterion.offsets().softmax(0)                     # 2.5, 1.5 and 1.5 of 5.5
        tensor([0.4545, 0.2727, 0.2727], dtype=torch.float64)
    """

    seen: Tensor
    _flexible = ("seen",)

    def __init__(self, problem: Problem, *, classes: Sequence[Any] | None = None) -> None:
        super().__init__()
        self.problem = problem
        self.classes = None if classes is None else tuple(classes)
        if self.classes is not None:  # a class that there is not is told now
            members_of(problem, class_names_of(self.classes, len(self.classes)))
        self.enrol()
        self.register_buffer("seen", torch.zeros(0, dtype=torch.float64))

    def forward(self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch."""
        if scores.numel() == 0:
            return scores.sum()
        labels = torch.as_tensor(labels, device=scores.device).reshape(-1).long()
        if self.training and torch.is_grad_enabled() and scores.requires_grad:
            self.count(scores, labels, weights)
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return class_cross_entropy(exact + self._offsets(exact), labels, weights)

    def slopes(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The gradient on the scores, ``[n, K]``; counts nothing."""
        leaf = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
        return cross_entropy_slopes(leaf + self._offsets(leaf), labels, weights)

    def count(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> None:
        """Take in how often each class occurs in a batch."""
        columns = scores.shape[1]
        if self.seen.shape != (columns,) or self.seen.device != scores.device:
            known = self.seen if self.seen.shape == (columns,) else self.seen.new_zeros(columns)
            self.seen = known.to(scores.device)
        own = torch.ones_like(labels) if weights is None else weights.detach()
        self.seen.index_add_(0, labels, own.to(self.seen.dtype))

    def offsets(self) -> Tensor:
        """What is added to the scores, ``[K]``: minus the logarithms of the class weights."""
        return self.offsets_after(self.seen)

    def offsets_after(self, seen: Tensor) -> Tensor:
        """The same after so many examples of each class, ``[K]``."""
        counts = seen.detach().cpu().numpy() + UNSEEN
        members = members_of(self.problem, class_names_of(self.classes, len(counts)))
        found = -log_weights(self.problem, members, counts / counts.sum())
        return torch.from_numpy(np.ascontiguousarray(found)).to(seen.device)

    def _offsets(self, scores: Tensor) -> Tensor:
        if not len(self.seen):  # no batch was trained on yet
            return scores.new_zeros(scores.shape[1])
        given = offsets_of(self) if torch.compiler.is_compiling() else self.offsets()
        return given.to(scores)

    def __repr__(self) -> str:
        names = "" if self.classes is None else f", classes={list(self.classes)!r}"
        return f"{type(self).__name__}({self.problem}{names})"
