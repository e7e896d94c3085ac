"""The goal's own metric on held-out data: what early stopping looks at, never the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.distributed import gather_rows
from setpoint.problems import Infeasible, Problem

CHUNK = 65_536
"""Examples scored at once: a few megabytes for a small model."""


@dataclass(frozen=True)
class Validation:
    """Data that training does not see, and the problem they are judged by.

    Args:
        problem: What is wanted; its :meth:`~setpoint.Problem.evaluate` is the metric.
        x: Features.
        y: Labels, 0 or 1; of classes, the column.
        weights: Optional, one an example.
        groups: For problems with slices, as :meth:`~setpoint.Problem.evaluate` takes them.
    """

    problem: Problem
    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    groups: Any = None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The data that decide the metric."""
        return self.x, self.y, self.weights, self.groups

    def check(self) -> None:
        """Raise now what :meth:`metric` would raise after a pass, such as a class that is missing.

        Raises:
            ValueError: The goal cannot be measured on these data.
        """
        labels, *rest = self._of_all(self.y)
        try:
            columns = (int(labels.max()) + 1,) if self.problem.kind == "classes" else ()
            self._evaluate(torch.zeros(len(labels), *columns), *rest)
        except Infeasible:
            pass  # of constant scores: these, not the data, are to blame
        except ValueError as error:
            raise ValueError(f"The validation data cannot judge the goal: {error}") from None

    def metric(self, model: nn.Module) -> tuple[float | None, str]:
        """The value the goal has with ``model``, or None and the reason why it has none."""
        scores, *rest = self._of_all(score(model, self.x))
        if not bool(torch.isfinite(scores).all()):
            return None, "scores are not finite"
        try:
            value = self._evaluate(scores, *rest)
        except Infeasible:
            return None, "infeasible on the validation data"
        return value, ""

    def _of_all(self, scores: Tensor) -> tuple[Any, ...]:
        """Scores, labels, weights and groups of all ranks: each example once."""
        mine = {"scores": scores, "y": self.y, "weights": self.weights, "groups": self.groups}
        return tuple(gather_rows(mine)[0].values())

    def _evaluate(self, scores: Tensor, labels: Tensor, weights: Any, groups: Any) -> float:
        return self.problem.evaluate(scores, labels, weights=weights, groups=groups)

    def better(self, value: float | None, best: float | None) -> bool:
        """Whether ``value`` improves on the ``best`` so far; no value never does."""
        if value is None or best is None:
            return value is not None
        return value > best if self.problem.maximize else value < best


@torch.no_grad()
def score(model: nn.Module, x: Tensor) -> Tensor:
    """The scores of all rows, ``[n]``, in evaluation mode, a chunk at a time.

    Of a model with several outputs ``[n, K]``.
    """
    training = model.training
    model.eval()
    parts = [model(x[i : i + CHUNK]) for i in range(0, len(x), CHUNK)]
    model.train(training)
    if not parts:
        return torch.zeros(0)
    scores = torch.cat(parts)
    return scores.reshape(-1) if scores.numel() == len(x) else scores
