"""Goals by the names people know them by."""

from __future__ import annotations

from setpoint._checks import whole
from setpoint.problems.problem import Problem
from setpoint.problems.validation import DEFAULT_POINTS
from setpoint.rates import alerts, coverage, precision, recall, tpr
from setpoint.rates import fnr as fnr_
from setpoint.rates import fpr as fpr_


def fnr_at_fpr(level: float) -> Problem:
    """The lowest miss rate with at most this share of false alarms.

    >>> print(fnr_at_fpr(0.01))
    minimize fnr subject to fpr <= 0.01
    """
    return Problem(minimize=fnr_, subject_to=fpr_ <= level)


def tpr_at_fpr(level: float) -> Problem:
    """The highest detection rate with at most this share of false alarms."""
    return Problem(maximize=tpr, subject_to=fpr_ <= level)


def precision_at_recall(level: float) -> Problem:
    """The highest precision that still finds this share of the positives."""
    return Problem(maximize=precision, subject_to=recall >= level)


def recall_at_precision(level: float) -> Problem:
    """The highest recall whose alerts are right at least this often."""
    return Problem(maximize=recall, subject_to=precision >= level)


def precision_at_k(k: int, of: int | None = None) -> Problem:
    """The precision of the ``k`` highest scores.

    Args:
        k: How many examples are accepted.
        of: The size of the population ``k`` refers to: ``precision_at_k(100, of=50_000)`` accepts
            0.2 % of whatever is passed in. Without it, ``k`` of what is passed in.
    """
    k = whole(k, "k", least=1)
    if of is None:
        return Problem(maximize=precision, subject_to=alerts.at(k))
    if whole(of, "of", least=1) <= k:
        raise ValueError(f"k must be less than the population it is taken of; got {k} of {of}.")
    return Problem(maximize=precision, subject_to=coverage.at(k / of))


def roc_auc(fpr: tuple[float, float] = (0.0, 1.0), points: int = DEFAULT_POINTS) -> Problem:
    """The area under the ROC curve over a range of false positive rates.

    >>> print(roc_auc(fpr=(0, 0.05)))
    maximize tpr over fpr in [0, 0.05] with 10 thresholds
    """
    return Problem(maximize=tpr, subject_to=fpr_.over(*fpr), thresholds=points)


def pr_auc(recall: tuple[float, float] = (0.0, 1.0), points: int = DEFAULT_POINTS) -> Problem:
    """The mean precision over a range of recall."""
    from setpoint.rates import recall as rate

    return Problem(maximize=precision, subject_to=rate.over(*recall), thresholds=points)
