"""The words of goals: what sentences may say besides the names of rates, and what it stands for.

To teach the parser a phrase, add a line to :data:`PHRASES`; to let sentences call a function, put
it into :data:`EXPRESSIONS` or :data:`TARGETS`, or decorate a goal with :func:`goal`. The page of
the grammar (docs/goals.md) is made from these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from setpoint import fairness
from setpoint.axes.specification import Specification
from setpoint.rates import Expression, Fold, maximum, minimum

F = TypeVar("F", bound=Callable[..., Any])

PHRASES: dict[str, str] = {
    "maximise": "maximize",
    "minimise": "minimize",
    "s.t.": "subject to",
    "st": "subject to",
    "such that": "subject to",
    "while keeping": "subject to",
    "constrained to": "subject to",
    "at most": "<=",
    "no more than": "<=",
    "at least": ">=",
    "no less than": ">=",
    "≤": "<=",
    "=<": "<=",
    "≥": ">=",
    "=>": ">=",
    "==": "=",
    "sensitivity": "recall",
    "hit rate": "recall",
    "detection rate": "recall",
    "true positive rate": "tpr",
    "specificity": "tnr",
    "true negative rate": "tnr",
    "false positive rate": "fpr",
    "false alarm rate": "fpr",
    "false negative rate": "fnr",
    "miss rate": "fnr",
    "ppv": "precision",
    "positive predictive value": "precision",
    "negative predictive value": "npv",
    "fdr": "(1 - precision)",
    "false discovery rate": "(1 - precision)",
    "alert rate": "coverage",
    "alert share": "coverage",
    "acceptance rate": "coverage",
    "approval rate": "coverage",
    "selection rate": "coverage",
    "error rate": "error",
    "balanced error rate": "balanced_error",
    "balanced accuracy": "(1 - balanced_error)",
    "balanced_accuracy": "(1 - balanced_error)",
    "matthews correlation": "mcc",
    "matthews correlation coefficient": "mcc",
    "phi coefficient": "mcc",
    "cohen kappa": "kappa",
    "f1": "f_score(1)",
    "f1 score": "f_score(1)",
    "f1_score": "f_score(1)",
    "f2": "f_score(2)",
    "f2 score": "f_score(2)",
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "roc auc": "roc_auc",
    "auprc": "pr_auc",
    "pr auc": "pr_auc",
    "average precision": "pr_auc",
}
"""What people write, in lower case, and the words it stands for."""

FOLDS: dict[str, Callable[..., Expression]] = {
    "abs": lambda *parts: Fold("abs", parts),
    "max": maximum,
    "min": minimum,
}
EXPRESSIONS: dict[str, Callable[..., Expression]] = {
    each.__name__: each
    for each in (fairness.gap, fairness.ratio, fairness.largest, fairness.smallest)
}
"""Functions of a rate and groups, as in ``gap(tpr, sex=[f, m])``."""
TARGETS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        fairness.demographic_parity,
        fairness.equal_opportunity,
        fairness.equalized_odds,
        fairness.predictive_parity,
        fairness.bounded_group_loss,
        fairness.four_fifths,
    )
}
"""Functions that give one bound or several, as in ``demographic_parity(0.02, sex=[f, m])``."""
GOALS: dict[str, Callable[..., Specification]] = {}
"""Functions that give a whole problem, as in ``fnr_at_fpr(0.01)``."""


def goal(function: F) -> F:
    """Let sentences call a function that makes a problem; a decorator."""
    GOALS[function.__name__] = function
    return function
