"""All goals of the study from one sort of the scores, in points: more is better."""

import numpy as np
from numpy.typing import NDArray

import setpoint as sp

GOALS: dict[str, sp.Problem] = {
    "fnr1": sp.fnr_at_fpr(0.01),
    "fnr01": sp.fnr_at_fpr(0.001),
    "fnr001": sp.fnr_at_fpr(0.0001),
    "pr95": sp.precision_at_recall(0.95),
    "ap": sp.pr_auc(),
}
TITLES = {
    "fnr1": "recall at FPR 1 %",
    "fnr01": "recall at FPR 0.1 %",
    "fnr001": "recall at FPR 0.01 %",
    "pr95": "precision at recall 95 %",
    "ap": "average precision",
}
FPR = {"fnr1": 0.01, "fnr01": 0.001, "fnr001": 0.0001}
RECALL = 0.95
FEWEST = 4.8  # false alarms that a part allows: below, a rate is judged by a few examples


def judged(labels: NDArray[np.int64]) -> list[str]:
    """The goals that so many negatives can judge."""
    negatives = int((labels == 0).sum())
    return [goal for goal in GOALS if FPR.get(goal, 1.0) * negatives >= FEWEST]


def metrics(scores: NDArray[np.float32], labels: NDArray[np.int64]) -> dict[str, float]:
    """Every goal by the best threshold on these rows; scores that are not finite count 0."""
    if not np.isfinite(scores).all():
        return dict.fromkeys(GOALS, 0.0)
    order = np.argsort(-scores)
    ranked, hit = scores[order], labels[order] > 0
    last = np.append(ranked[1:] != ranked[:-1], True)  # a threshold takes all of a tie
    caught = np.cumsum(hit)[last]
    taken = np.flatnonzero(last) + 1
    positives = caught[-1]
    alarms = taken - caught
    found = {}
    for goal, rate in FPR.items():
        allowed = int(np.floor(rate * alarms[-1] * (1 + 1e-12)))
        place = np.searchsorted(alarms, allowed, side="right")
        found[goal] = 100 * caught[place - 1] / positives if place else 0.0
    precision = caught / taken
    found["pr95"] = 100 * precision[caught >= RECALL * positives * (1 - 1e-12)].max()
    found["ap"] = 100 * float(precision @ np.diff(caught, prepend=0)) / positives
    return {goal: float(value) for goal, value in found.items()}
