"""What the test part says about scores: areas, decisions at 0, a curve for drawing."""

from __future__ import annotations

import numpy as np

from setpoint import Problem, f_score


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The area under the ROC curve; a tie counts one half."""
    low = np.sort(scores[~positive])
    places = np.searchsorted(low, scores[positive]) + np.searchsorted(
        low, scores[positive], "right"
    )
    return float(places.mean() / (2 * len(low)))


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """Where F1 is highest on these examples; 0 if scores are not finite."""
    if not np.isfinite(scores).all():
        return 0.0
    return float(Problem(maximize=f_score(1)).choose(scores, labels).thresholds[0])


def judged(scores: np.ndarray, labels: np.ndarray, threshold: float = 0.0) -> dict[str, float]:
    """AUC, F1 of the decisions ``score > threshold``, accuracy, and the share decided positive."""
    if not np.isfinite(scores).all():
        return {"auc": 0.5, "f1": 0.0, "accuracy": 0.5, "share": 0.0, "diverged": 1.0}
    positive, said = labels > 0, scores > threshold
    hit = (positive & said).sum()
    return {
        "auc": auc(scores, positive),
        "f1": float(2 * hit / max(1, positive.sum() + said.sum())),
        "accuracy": float((positive == said).mean()),
        "share": float(said.mean()),
    }


def judged_classes(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """One against all, and AUC_mu with the 0/1 partition: the mean over pairs of classes."""
    if not np.isfinite(scores).all():
        return {"ova": 0.5, "mu": 0.5, "diverged": 1.0}
    classes = range(scores.shape[1])
    pairs = []
    for k in classes:
        for other in range(k):
            two = (labels == k) | (labels == other)
            pairs.append(auc((scores[:, k] - scores[:, other])[two], labels[two] == k))
    return {
        "ova": float(np.mean([auc(scores[:, k], labels == k) for k in classes])),
        "mu": float(np.mean(pairs)),
    }


def curve(scores: np.ndarray, positive: np.ndarray, points: int = 51) -> list[float]:
    """True positive rates at evenly spaced false positive rates: a ROC curve for drawing."""
    levels = np.quantile(scores[~positive], 1 - np.linspace(0, 1, points))
    high = np.sort(scores[positive])
    return [round(float(x), 4) for x in 1 - np.searchsorted(high, levels, "left") / len(high)]
