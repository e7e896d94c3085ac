"""The goal's own metric on held-out data, by which the best pass is chosen (never by the loss)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.distributed import gather_rows
from setpoint.problems import Infeasible, Problem

_EXAMPLES_AT_ONCE = 65_536  # examples scored at once: a few megabytes for a small model


@dataclass(frozen=True)
class Validation:
    """Data that training does not see, and the goal whose metric is taken on them.

    Args:
        problem: The goal; its :meth:`~setpoint.Problem.evaluate` is the metric.
        x: Features.
        y: Labels, 0 or 1; for a goal about classes, the column of the class.
        weights: Optional, one per example.
        groups: For problems with slices, as :meth:`~setpoint.Problem.evaluate` takes them.

    Examples:
        >>> from setpoint import fnr_at_fpr
        >>> x, y = torch.tensor([[3.0], [2.0], [1.0], [0.0]]), torch.tensor([1, 0, 1, 0])
        >>> print(Validation(fnr_at_fpr(0.5), x, y).problem)
        minimize fnr subject to fpr <= 0.5
    """

    problem: Problem
    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    groups: Any = None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The columns that decide the metric."""
        return self.x, self.y, self.weights, self.groups

    def part(self, rows: Tensor) -> Validation:
        """Some of the rows, by position, under the same goal."""
        weights = None if self.weights is None else self.weights[rows]
        at = rows.cpu().numpy()
        groups = self.groups and {name: column[at] for name, column in self.groups.items()}
        return Validation(self.problem, self.x[rows], self.y[rows], weights, groups)

    def check(self) -> None:
        """Check that the metric can be taken, so that a run does not fail after its first pass.

        Raises:
            ValueError: It cannot, because a class is missing, for example.
        """
        _, labels, weights, groups = self._gathered(self.y)
        try:
            columns = (int(labels.max()) + 1,) if self.problem.kind == "classes" else ()
            zeros = torch.zeros(len(labels), *columns)
            self.problem.evaluate(zeros, labels, weights=weights, groups=groups)
        except Infeasible:
            pass  # constant scores miss the bounds; others may not
        except ValueError as error:
            raise ValueError(f"The validation data cannot judge the goal: {error}") from None

    def metric(self, model: nn.Module) -> tuple[float | None, str]:
        """The goal's value with ``model`` and "", or None and the reason why it has none."""
        return self.value(score(model, self.x))

    def value(self, scores: Tensor) -> tuple[float | None, str]:
        """The same of scores, one per row of this rank."""
        scores, labels, weights, groups = self._gathered(scores)
        if not bool(torch.isfinite(scores).all()):
            return None, "scores are not finite"
        try:
            return self.problem.evaluate(scores, labels, weights=weights, groups=groups), ""
        except Infeasible:
            return None, "infeasible on the validation data"

    def scores(self, model: nn.Module) -> tuple[Any, ...]:
        """The scores by ``model``, labels, weights and groups, of all ranks."""
        return self._gathered(score(model, self.x))

    def _gathered(self, scores: Tensor) -> tuple[Any, ...]:
        """Scores, labels, weights and groups of all ranks, each example once."""
        mine = {"scores": scores, "y": self.y, "weights": self.weights, "groups": self.groups}
        return tuple(gather_rows(mine)[0].values())

    def better(self, value: float | None, best: float | None) -> bool:
        """Whether ``value`` improves on the ``best`` so far; no value never does."""
        if value is None or best is None:
            return value is not None
        return value > best if self.problem.maximize else value < best


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode, and then every part as it was."""
    were = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training in were:
            part.training = training


@torch.no_grad()
def score(model: nn.Module, x: Tensor) -> Tensor:
    """The scores of all rows in evaluation mode, ``[n]``, or ``[n, K]`` for K outputs.

    Examples:
        >>> score(nn.Linear(3, 1), torch.zeros(5, 3)).shape
        torch.Size([5])
    """
    with evaluating(model):
        parts = [model(x[i : i + _EXAMPLES_AT_ONCE]) for i in range(0, len(x), _EXAMPLES_AT_ONCE)]
    if not parts:
        return torch.zeros(0)
    scores = torch.cat(parts)
    return scores.reshape(-1) if scores.numel() == len(x) else scores
