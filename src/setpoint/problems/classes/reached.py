"""Whether shifts reach what was asked of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.problems.choice import Infeasible
from setpoint.problems.classes.data import ClassData
from setpoint.problems.holds import tolerance
from setpoint.problems.problem import Problem
from setpoint.rates import Bound, Tables


def check_reached(problem: Problem, data: ClassData, tables: Tables) -> None:
    """Bounds must hold; a coverage may be off by K - 1 examples, another setpoint by one."""
    for target in problem.points[0]:
        value, close = float(target.expression.of(tables)), tolerance(target.expression)
        room = 0.0
        if not isinstance(target, Bound):
            sizes = [
                float(rate.denominator.of(_counts(rate, tables)))
                for rate in target.expression.rates()
            ]
            steps = (data.scores.shape[1] - 1) * float(data.weights.max())
            room = steps * target.expression.scale / max(min(sizes, default=1.0), 1e-300)
        if not float(target.gap(tables)) <= close + room:
            nearest = "it is 0/0" if np.isnan(value) else f"the nearest gives {value:.6g}"
            raise Infeasible(
                f"No shifts were found that reach `{' and '.join(map(str, problem.subject_to))}`: "
                f"for {target.expression} {nearest}. The data have {len(data.scores):,} examples "
                f"of {int((data.truth > 0).sum())} classes. Loosen the target, or pass more data."
            )


def _counts(rate: Any, tables: Tables) -> Any:
    table = tables[rate.where]
    return table.classes.against_rest(rate.classes) if rate.classes else table
