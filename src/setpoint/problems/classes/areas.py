"""How well scores rank several classes: AUC_mu (Kleiman and Page, 2019), and one against all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from setpoint.problems.classes.data import ClassData, Floats


def class_area(kind: str, data: ClassData) -> float:
    """The mean over pairs of classes, or over classes against the rest.

    Two classes are told apart by the difference of their scores, one and the rest by its own.
    """
    scores, labels, weights = data.scores, data.labels, data.weights
    count = scores.shape[1]
    if kind == "one_vs_all_auc":
        areas = [_auc(scores[:, k], labels == k, weights) for k in range(count)]
        return float(np.mean(areas))
    areas = []
    for one, other in combinations(range(count), 2):
        rows = (labels == one) | (labels == other)
        margin = scores[rows, one] - scores[rows, other]
        areas.append(_auc(margin, labels[rows] == one, weights[rows]))
    return float(np.mean(areas))


def _auc(scores: Floats, positive: NDArray[np.bool_], weights: Floats) -> float:
    """The share of pairs in the right order; equal ones count half."""
    values, place = np.unique(scores, return_inverse=True)
    p = np.bincount(place, weights * positive, len(values))
    n = np.bincount(place, weights * ~positive, len(values))
    below = np.cumsum(n) - n
    return float(p @ (below + n / 2) / (p.sum() * n.sum()))
