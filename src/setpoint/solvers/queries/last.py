"""What happened in the last batch of queries: put into words and numbers only when asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from setpoint.problems import Infeasible, Problem


@dataclass(frozen=True)
class LastQueries:
    """The last batch as it was handed in, and what holding gave; counts are of queries."""

    problem: Problem
    scores: Tensor
    given: dict[str, Any]  # labels, weights, groups, queries
    value: Tensor
    count: Tensor
    judged: Tensor
    missed: Tensor
    share: Tensor | float
    gradient: Tensor | None = None

    @cached_property
    def status(self) -> str:
        """The first trouble, or *held*."""
        if not self.scores.isfinite().all():
            return "undefined: scores are not finite"
        if self.gradient is not None and not self.gradient.isfinite().all():
            return "undefined: the main loss has no finite gradient"
        if int(self.judged) == 0:
            return "no query has both relevant and other documents"
        if int(self.missed):
            targets = " and ".join(map(str, self.problem.subject_to))
            return (
                f"infeasible: `{targets}` is not met in {int(self.missed):,} of "
                f"{int(self.count):,} queries"
            )
        return "held"

    def raise_if_not_held(self) -> None:
        """For ``strict=True``: every trouble is an error."""
        if self.status != "held":
            raise ValueError(
                f"Cannot hold `{self.problem}` on this batch: {self.status}. Use queries with "
                "more documents, loosen the target, or drop strict=True."
            )

    def stats(self) -> dict[str, Any]:
        """Plain numbers; rates are means over queries."""
        found = {
            "status": self.status,
            "queries": int(self.count),
            "judged": int(self.judged),
            "soft_objective": float(self.value) * (-1 if self.problem.maximize else 1),
            "share": float(self.share),
        }
        if self.problem.swept is not None:
            return found
        try:
            choice = self.problem.choose(self.scores.reshape(-1), **self.given)
        except (Infeasible, ValueError):
            return {**found, "hard_objective": None, "held_rate": None}
        held = [choice.rates[str(target.expression)] for target in self.problem.subject_to[:1]]
        return {**found, "hard_objective": choice.value, "held_rate": held[0] if held else None}
