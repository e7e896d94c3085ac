"""ROC curves: every pair of rates that some threshold reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint.batch import check_labels, check_scores, describe

Floats = NDArray[np.float64]
SAME_COUNT = 1e-9
"""Rates closer than this are the same count of examples, whatever floats make of them."""


class Curve(NamedTuple):
    """Points of a ROC curve from (0, 0) to (1, 1), one for each way to cut the scores."""

    fpr: Floats
    tpr: Floats


def roc_curve(scores: Any, labels: Any) -> Curve:
    """The curve of ``scores`` [n] for ``labels`` [n], 0 or 1; equal scores are never split.

    Example:
        >>> roc_curve([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0]).tpr.tolist()
        [0.0, 0.5, 1.0, 1.0]
    """
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    check_scores(s)
    check_labels(y, s)
    positives = int((y == 1).sum())
    if positives in (0, y.size):
        counted = describe(positives, y.size - positives)
        raise ValueError(f"A ROC curve needs examples of both classes; got {counted}.")
    order = np.argsort(-s, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(s[order])), s.size - 1)  # last of each tied block
    found = np.cumsum(y[order] == 1)[ends]
    alarms = ends + 1 - found
    return Curve(
        np.concatenate([[0.0], alarms / (y.size - positives)]),
        np.concatenate([[0.0], found / positives]),
    )


def tpr_at(curve: Curve, levels: ArrayLike) -> Floats:
    """The highest TPR with an FPR of at most each of ``levels``: what ``fnr_at_fpr`` reports."""
    reached = np.searchsorted(curve.fpr, np.asarray(levels) + SAME_COUNT, side="right")
    return curve.tpr[reached - 1]


def mean_curve(curves: Sequence[Curve], levels: ArrayLike) -> Curve:
    """The mean over several curves of the TPR at each of ``levels``."""
    if not curves:
        raise ValueError("A mean needs at least one curve.")
    x = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    return Curve(x, np.mean([tpr_at(curve, x) for curve in curves], axis=0))
