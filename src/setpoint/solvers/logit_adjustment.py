"""Logit adjustment (Menon et al., 2021) for any goal: cross-entropy that leans as the goal does.

Plain cross-entropy learns how likely each class is, and a frequent class wins. Added to the scores
in the loss, and only there, minus the logarithms of the goal's class weights make the scores
themselves those of the goal: for balanced error they are the logarithms of the class shares.

The weights: near an operating point a goal is linear in the confusion matrix: taking class ``i``
for ``j`` costs ``c_ij`` more than taking it for ``i``. Two classes are then best told apart where
``p_i c_ij = p_j c_ji``, so the logarithms of their weights differ by ``log(c_ij / c_ji)``. For
balanced error that is a weight of 1 / share of the class; for plain error all weights are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.axes.arrays import Floats
from setpoint.axes.class_data import class_names_of, members_of, top_ks
from setpoint.axes.classes import by_entry
from setpoint.axes.confusion import ConfusionMatrix
from setpoint.losses import exact_type
from setpoint.losses.log_likelihood import class_cross_entropy, class_cross_entropy_gradient
from setpoint.problems import Problem
from setpoint.rates import Across, ClassSet, Cost, Expression, Fold, Rate
from setpoint.rates.expression import Gradient
from setpoint.solvers.closed_form import ClosedForm, ExampleColumns

UNSEEN = 0.5
"""How many examples of each class are taken as seen before the first: no share is zero."""


class Adjusted(ClosedForm):
    """Cross-entropy of ``score - log(weight of the class)``; goals that weigh none leave it plain.

    The shares of the classes are those of all batches so far, weights included.

    Args:
        problem: Whose class weights are meant.
        classes: What the columns of the scores are called; see :class:`setpoint.Implicit`.

    Examples:
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
        self.register_buffer("seen", torch.zeros(0, dtype=torch.float64))

    def forward(self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch."""
        return self.loss(scores, labels, ExampleColumns(weights))

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and its gradient on the scores."""
        weights = columns.weights
        labels = torch.as_tensor(labels, device=scores.device).reshape(-1).long()
        if self.training and learns:
            self.count(scores, labels, weights)
        exact = scores.to(exact_type(scores))
        value = class_cross_entropy(exact + self._offsets(exact), labels, weights)
        return value, self.slopes(scores, labels, weights)

    def slopes(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The gradient on the scores, ``[n, K]``; counts nothing."""
        leaf = scores.detach().to(exact_type(scores))
        return class_cross_entropy_gradient(leaf + self._offsets(leaf), labels, weights)

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
        counts = self.seen.cpu().numpy() + UNSEEN
        members = members_of(self.problem, class_names_of(self.classes, len(counts)))
        found = -log_weights(self.problem, members, counts / counts.sum())
        return torch.from_numpy(np.ascontiguousarray(found)).to(self.seen.device)

    def _offsets(self, scores: Tensor) -> Tensor:
        if not len(self.seen):  # no batch was trained on yet
            return scores.new_zeros(scores.shape[1])
        return self.offsets().to(scores)

    def __repr__(self) -> str:
        names = "" if self.classes is None else f", classes={list(self.classes)!r}"
        return f"{type(self).__name__}({self.problem}{names})"


NONE = 1e-9
"""Of the largest cost: below this share a mistake costs nothing."""


def log_weights(problem: Problem, members: Mapping[ClassSet, Floats], shares: Floats) -> Floats:
    """The logarithm of each class's weight, ``[K]``, adding up to zero.

    Costs are read where nothing is known yet: every class is predicted as often as it occurs,
    whatever is true. Zero for two classes (they are the binary problem, with its main loss), and
    for goals that name a class and have another slope at every operating point (an F score of
    "cat"), or for which some mistake is free while its opposite is not: these say nothing
    about weights.

    Args:
        problem: What is wanted.
        members: For each set of classes it names, 1 for the members.
        shares: How often each class occurs.
    """
    count = len(shares)
    if count == 2 or any(_is_bent(node) for node in problem.objective.nodes()):
        return np.zeros(count)
    costs = mistakes(problem, members, shares)
    counts = np.abs(costs) > NONE * np.abs(costs).max()
    if (costs[counts] < 0).any() or (counts != counts.T).any():
        return np.zeros(count)
    return _fitted(costs, counts)


def leans(problem: Problem, classes: Sequence[Any] | None) -> bool:
    """Whether the adjusted loss differs from cross-entropy for classes of unequal frequency.

    It is tried on frequencies in the ratio 1 : 2 : 3, of three classes at least.
    """
    names = _asked_for(problem) if classes is None else class_names_of(classes, len(classes))
    shares = np.arange(1.0, len(names) + 1)
    return bool(log_weights(problem, members_of(problem, names), shares / shares.sum()).any())


def _asked_for(problem: Problem) -> tuple[Any, ...]:
    """Three classes at least, and all that the problem speaks of."""
    every = list(problem.nodes())
    named = dict.fromkeys(name for node in every for name in getattr(node, "classes", ()))
    sizes = [len(node.costs) for node in every if isinstance(node, Cost)]
    count = max([*sizes, len(named)]) if sizes else max(3, len(named))
    others = (i for i in range(count + len(named)) if i not in named)
    return (*named, *islice(others, count - len(named)))


def mistakes(problem: Problem, members: Mapping[ClassSet, Floats], shares: Floats) -> Floats:
    """What taking the class of a row for that of a column costs more than being right."""
    objective = _evenly(problem.objective)
    hits = {k: shares * min(1.0, k / len(shares)) for k in top_ks(problem)}
    table = ConfusionMatrix(np.outer(shares, shares), members, hits).table()
    with np.errstate(all="ignore"):
        slopes = _by_matrix_entry(
            objective.gradient(dict.fromkeys(problem.slices, table)), len(shares)
        )
    worse = slopes.diagonal()[:, None] - slopes
    return worse if problem.maximize else -worse


def _fitted(costs: Floats, counts: NDArray[np.bool_]) -> Floats:
    """The weights whose ratios are nearest to what all pairs of classes ask for."""
    ratios = np.zeros_like(costs)
    ratios[counts] = np.log(costs[counts] / costs.T[counts])
    between = np.diag(counts.sum(1)) - counts.astype(np.float64)
    found = np.linalg.lstsq(between, ratios.sum(1), rcond=None)[0]
    return np.asarray(found - found.mean())


def _evenly(expression: Expression) -> Expression:
    """The mean in place of the worst: all classes (or parts) may be it before the end."""
    if isinstance(expression, Across):
        return Across("macro", expression.inner)
    if isinstance(expression, Fold) and expression.kind != "abs":
        total = sum(map(_evenly, expression.parts[1:]), _evenly(expression.parts[0]))
        return total / len(expression.parts)
    if not expression.children:
        return expression
    return expression._rebuilt(tuple(map(_evenly, expression.children)))


def _is_bent(node: Expression) -> bool:
    return isinstance(node, Rate) and bool(node.classes) and not node.is_steady


def _by_matrix_entry(by_count: Gradient, count: int) -> Floats:
    total = np.zeros((count, count))
    for (_, kind), slope in by_count.items():
        if kind < 0:
            total += np.asarray(slope)[:, None] * np.eye(count)
        else:
            total += by_entry(kind, slope, count)
    return total
