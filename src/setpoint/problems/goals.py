"""Goals by the names people know them by."""

from __future__ import annotations

from setpoint import rates
from setpoint._checks import whole
from setpoint.axes.specification import DEFAULT_POINTS
from setpoint.problems.problem import Problem
from setpoint.rates import alerts, coverage, precision, recall, tpr
from setpoint.rates import fnr as fnr_
from setpoint.rates import fpr as fpr_

WHOLE = (0.0, 1.0)
"""The range of a share."""


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


def roc_auc(
    fpr: tuple[float, float] | None = None,
    points: int = DEFAULT_POINTS,
    *,
    tpr: tuple[float, float] | None = None,
) -> Problem:
    """The area under the ROC curve, over a range of false or of true positive rates.

    >>> print(roc_auc(fpr=(0, 0.05)))
    maximize tpr over fpr in [0, 0.05] with 10 thresholds
    >>> print(roc_auc(tpr=(0.8, 1)))
    maximize tnr over tpr in [0.8, 1] with 10 thresholds
    """
    if tpr is not None:
        _one_axis(fpr, "fpr", "tpr")
        return Problem(maximize=rates.tnr, subject_to=rates.tpr.over(*tpr), thresholds=points)
    return Problem(maximize=rates.tpr, subject_to=fpr_.over(*(fpr or WHOLE)), thresholds=points)


def pr_auc(
    recall: tuple[float, float] | None = None,
    points: int = DEFAULT_POINTS,
    *,
    precision: tuple[float, float] | None = None,
) -> Problem:
    """The mean precision over a range of recall, or the mean recall over a range of precision.

    Over precision, each level is a floor: the best recall whose alerts are right that often.

    >>> print(pr_auc(precision=(0.9, 1)))
    maximize recall over precision in [0.9, 1] with 10 thresholds
    """
    if precision is not None:
        _one_axis(recall, "recall", "precision")
        over = rates.precision.over(*precision)
        return Problem(maximize=rates.recall, subject_to=over, thresholds=points)
    over = rates.recall.over(*(recall or WHOLE))
    return Problem(maximize=rates.precision, subject_to=over, thresholds=points)


def _one_axis(given: object, name: str, other: str) -> None:
    if given is not None:
        raise TypeError(f"An area has one range: give {name}= or {other}=, not both.")
