"""Areas as users know them: partial ROC-AUC with McClish's scaling, mean precision over recall."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.problems.problem import Problem
from setpoint.problems.scan import Cuts
from setpoint.rates import fpr, tpr

Array = Any


def area(problem: Problem, cuts: Cuts) -> float:
    """The objective over the swept range.

    For ``maximize tpr over fpr`` it is the trapezoid area under the ROC curve, scaled by McClish so
    that chance is 0.5 (scikit-learn's ``roc_auc_score(max_fpr=...)``). Otherwise it is the mean of
    the objective, at each level taken at the first cut that reaches it (over recall from 0 to 1
    that is scikit-learn's ``average_precision_score``).
    """
    swept, tables, valid = problem.swept, cuts.tables(), cuts.valid()[0, 0]
    assert swept is not None
    x, y = np.broadcast_arrays(swept.expression.of(tables), problem.objective.of(tables))
    x, y = x[0, 0][valid], y[0, 0][valid]
    if np.isnan(x).any() or np.isnan(y).all():
        return float("nan")
    if problem.maximize and problem.objective == tpr and swept.expression == fpr:
        return _mcclish(x, y, swept.low, swept.high)
    y = np.where(np.isnan(y), 0.0 if problem.maximize else 1.0, y)  # 0/0 is the worst value
    held_from_below = swept.setpoints(1)[0].caps
    steps = abs(np.diff(np.clip(x, swept.low, swept.high)))
    return float(steps @ (y[:-1] if held_from_below else y[1:]) / (swept.high - swept.low))


def _mcclish(x: Array, y: Array, low: float, high: float) -> float:
    """The area of every trapezoid between two points of the curve, cut off at both ends."""
    left, right = np.clip(x[:-1], low, high), np.clip(x[1:], low, high)
    rise, run = np.diff(y), np.diff(x)
    slope = np.divide(rise, run, out=np.zeros_like(run), where=run > 0)
    middle = y[:-1] + slope * ((left + right) / 2 - x[:-1])
    chance = (high**2 - low**2) / 2
    excess = float((right - left) @ middle) - chance
    return 0.5 * (1 + excess / (high - low - chance))
