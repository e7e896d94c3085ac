"""What happened in the last batch of several classes, put into words only when asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.axes.arrays import quiet
from setpoint.axes.class_data import ClassData
from setpoint.axes.class_search import Found
from setpoint.axes.confusion import hard_tables
from setpoint.axes.scan import TOLERANCE
from setpoint.problems import Problem
from setpoint.rates import Across, Bound, Expression, Rate, Setpoint, Tables, TopK
from setpoint.solvers.classes.held import HeldClasses
from setpoint.solvers.classes.soft import Soft


@dataclass(frozen=True)
class ClassLast:
    """The last batch: its examples, where the shifts were, what came out."""

    problem: Problem
    data: ClassData
    found: Found
    soft: Soft
    held: HeldClasses
    share: float
    trouble: str = ""

    @cached_property
    def hard(self) -> Tables:
        """True counts at the reported shifts."""
        return hard_tables(self.data, self.data.scores - self.found.shifts, self.soft.ks)

    def stats(self) -> dict[str, Any]:
        """Plain numbers."""
        with quiet(np):
            first = self.problem.subject_to[0].expression if self.problem.subject_to else None
            return {
                "status": self.status,
                "threshold": self.found.shifts.tolist(),
                "held_rate": None if first is None else _plain(first.of(self.hard)),
                "soft_objective": _plain(self.held.soft),
                "hard_objective": _plain(self.problem.objective.of(self.hard)),
                "multiplier": self.held.multipliers.tolist(),
                "share": self.share,
                "examples_in_band": self.examples_in_band(),
            }

    def examples_in_band(self) -> float:
        """How many examples share the gradient: those between two classes."""
        between = self.data.weights * (1 - (self.soft.p**2).sum(1))
        squares = float((between**2).sum())
        return float(between.sum()) ** 2 / squares if squares > 0 else 0.0

    @cached_property
    def status(self) -> str:
        """The first trouble, or *held*."""
        with quiet(np):
            return self.trouble or self._missing() or self._missed() or self._undefined() or "held"

    def raise_if_not_held(self) -> None:
        """For ``strict=True``: every trouble is an error."""
        if self.status != "held":
            raise ValueError(
                f"Cannot hold `{self.problem}` on this batch: {self.status}. Use larger or "
                "balanced batches, or drop strict=True."
            )

    def _missing(self) -> str:
        """Classes that the problem looks at and the batch does not have."""
        asked = np.zeros(len(self.data.names))
        expressions = (self.problem.objective, *(t.expression for t in self.problem.subject_to))
        for node in (node for expression in expressions for node in expression.nodes()):
            if isinstance(node, Across):
                asked += 1
            elif isinstance(node, (Rate, TopK)) and node.classes and _counts_truth(node):
                members = self.data.members[node.classes]
                asked += members if members.sum() == 1 else 0
        gone = np.flatnonzero((asked > 0) & (self.data.truth == 0))
        if not len(gone):
            return ""
        names = ", ".join(repr(self.data.names[i]) for i in gone[:3])
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        return f"no examples of {names}{more} in the batch"

    def _missed(self) -> str:
        for target in self.problem.points[0]:
            value = float(target.expression.of(self.hard))
            if np.isnan(value):
                return f"undefined: {target.expression} is 0/0 in the batch"
            gap = float(target.gap(self.hard))
            if gap > self._room(target):
                return f"infeasible (gap {gap:.2g}): {target} is not met, it is {value:.4g}"
            if isinstance(target, Setpoint) and isinstance(target.expression, Rate):
                size, aim = self._size(target.expression), target.level
                if target.expression.is_share and 0 < min(aim, 1 - aim) * size < 1 - TOLERANCE:
                    return (
                        f"too coarse: one of {plural(size, 'example')} is a rate of {1 / size:.2g},"
                        f" more than {min(aim, 1 - aim):.4g}"
                    )
        return ""

    def _room(self, target: Bound | Setpoint | Any) -> float:
        """By how much a setpoint may be off: K - 1 examples."""
        close = TOLERANCE * max(1.0, target.expression.scale)
        if isinstance(target, Bound):
            return close
        sizes = [size for size in map(self._size, target.expression.rates()) if size > 0]
        steps = (len(self.data.names) - 1) * float(self.data.weights.max(initial=0.0))
        return close + steps * max((1 / size for size in sizes), default=0.0)

    def _size(self, rate: Rate) -> float:
        table = self.hard[rate.where]
        return float(
            rate.denominator.of(table.classes.against_rest(rate.classes) if rate.classes else table)
        )

    def _undefined(self) -> str:
        if not np.isfinite(self.held.soft):
            return f"undefined: {self.problem.objective} is 0/0 in the batch"
        return "flat: no score between two classes" if self.held.flat else ""


def _counts_truth(node: Expression) -> bool:
    """Whether a rate needs examples of its class: recall does, coverage does not."""
    if not isinstance(node, Rate):
        return True
    bottom = node.denominator
    return bottom.tp == bottom.fn and bottom.tp != 0 and bottom.fp == bottom.tn == 0


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
