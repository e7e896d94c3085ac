"""Problems: an objective, what it is subject to, and its true value on data. Never torch."""

from setpoint.axes.choice import Choice, Infeasible
from setpoint.axes.specification import PER_GROUP
from setpoint.problems.class_checks import refuse_classes
from setpoint.problems.fairness import (
    bounded_group_loss,
    demographic_parity,
    each,
    equal_opportunity,
    equalized_odds,
    four_fifths,
    gap,
    largest,
    predictive_parity,
    ratio,
    smallest,
)
from setpoint.problems.goals import (
    fnr_at_fpr,
    pr_auc,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    roc_auc,
    tpr_at_fpr,
)
from setpoint.problems.merit import merit
from setpoint.problems.plain import check_plain
from setpoint.problems.problem import Problem
from setpoint.problems.validation import refuse_queries

__all__ = [
    "PER_GROUP",
    "Choice",
    "Infeasible",
    "Problem",
    "bounded_group_loss",
    "check_plain",
    "demographic_parity",
    "each",
    "equal_opportunity",
    "equalized_odds",
    "fnr_at_fpr",
    "four_fifths",
    "gap",
    "largest",
    "merit",
    "pr_auc",
    "precision_at_k",
    "precision_at_recall",
    "predictive_parity",
    "ratio",
    "recall_at_precision",
    "refuse_classes",
    "refuse_queries",
    "roc_auc",
    "smallest",
    "tpr_at_fpr",
]
