"""The goal's own metric on held-out data: what early stopping looks at, never the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint.problems import Infeasible, Problem

CHUNK = 65_536
"""Examples scored at once: a few megabytes for a small model."""


@dataclass(frozen=True)
class Validation:
    """Data that training does not see, and the problem they are judged by.

    Args:
        problem: What is wanted; its :meth:`~setpoint.Problem.evaluate` is the metric.
        x: Features.
        y: Labels, 0 or 1.
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
        """What decides the metric, beside the model."""
        return (
            {"problem": np.array([str(self.problem)])},
            self.x,
            self.y,
            self.weights,
            self.groups,
        )

    def check(self) -> None:
        """Raise now what :meth:`metric` would raise after a pass, such as a class that is missing.

        Raises:
            ValueError: The goal cannot be measured on these data.
        """
        try:
            scores = torch.zeros(len(self.y))
            self.problem.evaluate(scores, self.y, weights=self.weights, groups=self.groups)
        except Infeasible:
            pass  # of constant scores: these, not the data, are to blame
        except ValueError as error:
            raise ValueError(f"The validation data cannot judge the goal: {error}") from None

    def metric(self, model: nn.Module) -> tuple[float | None, str]:
        """The value the goal has with ``model``, or None and the reason why it has none."""
        scores = score(model, self.x)
        if not bool(torch.isfinite(scores).all()):
            return None, "scores are not finite"
        try:
            value = self.problem.evaluate(scores, self.y, weights=self.weights, groups=self.groups)
        except Infeasible:
            return None, "infeasible on the validation data"
        return value, ""

    def better(self, value: float | None, best: float | None) -> bool:
        """Whether ``value`` improves on the ``best`` so far; no value never does."""
        if value is None or best is None:
            return value is not None
        return value > best if self.problem.maximize else value < best


@torch.no_grad()
def score(model: nn.Module, x: Tensor) -> Tensor:
    """The scores of all rows, ``[n]``, in evaluation mode, a chunk at a time."""
    training = model.training
    model.eval()
    parts = [model(x[i : i + CHUNK]).reshape(-1) for i in range(0, len(x), CHUNK)]
    model.train(training)
    return torch.cat(parts) if parts else torch.zeros(0)
