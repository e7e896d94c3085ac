"""Two readings of "PR-AUC for recall in [start, 1]", which the ICO paper does not define.

Its table goes to 73, so the area is divided by the width of the range: the mean precision over it.
"""

from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_curve

import setpoint as sp

GRID = np.linspace(0, 1, 101)
STARTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def at_anchors(scores: Any, labels: Any, start: float = 0.95) -> float:
    """The mean of the exact precisions at five mid-points of the range, in points."""
    levels = start + (1 - start) * (np.arange(5) + 0.5) / 5
    goals = [sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(float(r))) for r in levels]
    return 100 * float(np.mean([goal.evaluate(scores, labels) for goal in goals]))


def under_curve(scores: Any, labels: Any, start: float = 0.95) -> float:
    """The area under the curve, best precision for each recall, over the width; in points."""
    recall, precision = _best(scores, labels)
    level = np.unique(np.concatenate([[start, 1.0], recall[recall >= start]]))
    return 100 * float(np.trapezoid(np.interp(level, recall, precision), level)) / (1 - start)


def curve(scores: Any, labels: Any) -> list[float]:
    """The best precision at every recall of the grid."""
    return [round(float(value), 4) for value in np.interp(GRID, *_best(scores, labels))]


def _best(scores: Any, labels: Any) -> tuple[Any, Any]:
    """Recalls in rising order, and the best precision with at least that recall."""
    precision, recall, _ = precision_recall_curve(labels, scores)
    precision = np.maximum.accumulate(precision)  # from recall 1 downwards
    recall, first = np.unique(recall[::-1], return_index=True)
    return recall, precision[::-1][first]
