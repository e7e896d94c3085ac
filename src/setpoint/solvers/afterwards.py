"""The exact threshold after a loss that knows none: what the last batch would be judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from setpoint.problems import PER_GROUP, Infeasible, Problem


@dataclass(frozen=True)
class Batch:
    """The last batch as it was handed in, and its loss."""

    loss: Tensor
    scores: Tensor
    labels: Tensor
    weights: Tensor | None = None
    groups: Any = None

    def stats(self, problem: Problem | None) -> dict[str, Any]:
        """Plain numbers, with the problem's exact threshold on this batch if it has one."""
        found: dict[str, Any] = {"status": "trained", "loss": float(self.loss)}
        if not self.loss.isfinite():
            return {**found, "status": "undefined: scores are not finite"}
        if problem is not None and problem.kind == "classes":
            return {**found, **self._of_classes(problem)}
        for name, of_class in (("positives", self.labels > 0), ("negatives", self.labels <= 0)):
            if not of_class.any():
                return {**found, "status": f"no {name} in the batch"}
        if self.scores.numel() > 1 and bool((self.scores == self.scores.reshape(-1)[0]).all()):
            return {**found, "status": "flat: all scores are equal"}
        several = self.scores.ndim > 1 and self.scores.shape[1] > 1
        if problem is None or problem.thresholds == PER_GROUP or several:
            return found
        scores, labels = self.scores.reshape(-1), self.labels.reshape(-1)
        try:
            choice = problem.choose(scores, labels, weights=self.weights, groups=self.groups)
        except Infeasible:
            return {**found, "status": f"infeasible: no threshold reaches `{problem}`"}
        except ValueError as error:
            return {**found, "status": f"undefined: {error}"}
        thresholds = [x if abs(x) < float("inf") else None for x in choice.thresholds]
        found["threshold"] = thresholds[0] if len(thresholds) == 1 else thresholds
        return {**found, "status": "held", "hard_objective": choice.value}

    def _of_classes(self, problem: Problem) -> dict[str, Any]:
        """The true value of an area of classes."""
        try:
            value = problem.evaluate(self.scores, self.labels, weights=self.weights)
        except ValueError as error:
            return {"status": f"undefined: {error}"}
        return {"status": "trained", "hard_objective": value}
