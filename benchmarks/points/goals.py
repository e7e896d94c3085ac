"""The goals of the comparison, and on which data they can be judged at all."""

import setpoint as sp

GOALS: dict[str, sp.Problem] = {
    "fnr1": sp.fnr_at_fpr(0.01),
    "fnr01": sp.fnr_at_fpr(0.001),
    "pr95": sp.precision_at_recall(0.95),
    "f1": sp.Problem(maximize=sp.f_score(1)),
    "pauc": sp.roc_auc(fpr=(0, 0.05)),
    "prauc": sp.pr_auc(recall=(0.95, 1.0)),
}
TITLES = {
    "fnr1": "FNR at FPR 1 %",
    "fnr01": "FNR at FPR 0.1 %",
    "pr95": "precision at recall 95 %",
    "f1": "F1",
    "pauc": "ROC-AUC, FPR in [0, 5 %]",
    "prauc": "PR-AUC, recall in [95 %, 1]",
}
FEWEST_FALSE_ALARMS = 4.8
"""A rate is judged where the test part allows so many false alarms: below, it is one example."""


def points(name: str, value: float) -> float:
    """The metric in points, more is better: 100 x TPR, precision, F or area."""
    return 100 * (value if GOALS[name].maximize else 1 - value)


def judged(negatives: int) -> list[str]:
    """The goals that so many test negatives can judge."""
    rates = {"fnr1": 0.01, "fnr01": 0.001}
    return [g for g in GOALS if rates.get(g, 1.0) * negatives >= FEWEST_FALSE_ALARMS]
