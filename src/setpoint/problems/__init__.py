"""Problems: an objective, what it is subject to, and its true value on data. Imports no torch."""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily
from setpoint.axes.specification import PER_GROUP
from setpoint.problems.capacity import Capacity
from setpoint.problems.goals import (
    GoalLike,
    about_classes,
    as_problem,
    evaluate,
    fnr_at_fpr,
    pr_auc,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    roc_auc,
    tpr_at_fpr,
)
from setpoint.problems.parser import parse_capacity
from setpoint.problems.problem import Problem, merit, read_goal
from setpoint.problems.validation import check_plain, holds_always, refuse_classes, refuse_queries

if TYPE_CHECKING:
    from setpoint.axes.choice import Choice, Infeasible

__all__ = [
    "PER_GROUP",
    "Capacity",
    "Choice",
    "GoalLike",
    "Infeasible",
    "Problem",
    "about_classes",
    "as_problem",
    "check_plain",
    "evaluate",
    "fnr_at_fpr",
    "holds_always",
    "merit",
    "parse_capacity",
    "pr_auc",
    "precision_at_k",
    "precision_at_recall",
    "read_goal",
    "recall_at_precision",
    "refuse_classes",
    "refuse_queries",
    "roc_auc",
    "tpr_at_fpr",
]

__getattr__ = import_lazily(__name__)
