"""Problems: an objective, what it is subject to, and its true value on data. Never torch."""

from setpoint.problems.evaluate import Choice, Infeasible
from setpoint.problems.goals import (
    fnr_at_fpr,
    pr_auc,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    roc_auc,
    tpr_at_fpr,
)
from setpoint.problems.problem import PER_GROUP, Problem

__all__ = [
    "Choice",
    "Infeasible",
    "PER_GROUP",
    "Problem",
    "fnr_at_fpr",
    "pr_auc",
    "precision_at_k",
    "precision_at_recall",
    "recall_at_precision",
    "roc_auc",
    "tpr_at_fpr",
]
