"""Goals by the names people know them by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard, overload

import numpy as np

from setpoint import rates
from setpoint._checks import whole
from setpoint.axes.specification import DEFAULT_POINTS
from setpoint.problems.capacity import BY_TIME
from setpoint.problems.parser import names_alerts_per_period
from setpoint.problems.problem import Problem, read_goal
from setpoint.problems.validation import as_targets, holds_always
from setpoint.problems.vocabulary import goal
from setpoint.rates import Bound, Range, Rate, Target, alerts, coverage, npv, precision, recall, tpr
from setpoint.rates import fnr as fnr_
from setpoint.rates import fpr as fpr_

WHOLE = (0.0, 1.0)
"""The range of a share."""
GoalLike = str | Problem | Target | Sequence[Target]
"""A goal as users write it: a problem, a sentence, or only the targets that must hold."""
_FLOORS = {recall, tpr, fnr_, npv}
"""Their bounds ask for alerts; what is left to want is to have few false ones."""


def as_problem(goal: GoalLike, who: str = "This") -> Problem:
    """A goal as a problem.

    Targets alone become a problem that maximizes recall, or minimizes the false positive rate if
    only recall, tpr, fnr or npv are bounded; targets of classes one that maximizes accuracy.

    Args:
        goal: What the user passed.
        who: What takes the goal, for the error.

    Raises:
        TypeError: The goal is neither a problem, nor a sentence, nor a target.
        ValueError: The sentence cannot be read, is about alerts per day, or has a bound that
            excludes nothing (``fpr <= 1``).

    Examples:
        >>> print(as_problem("fpr <= 1 %"))
        maximize recall subject to fpr <= 0.01
        >>> print(as_problem(recall >= 0.95))
        minimize fpr subject to recall >= 0.95
        >>> print(as_problem('recall of "cat" >= 90 %'))
        maximize accuracy subject to recall of "cat" >= 0.9
        >>> print(as_problem("Maximise sensitivity s.t. false positive rate at most 1 %"))
        maximize recall subject to fpr <= 0.01
    """
    problem = _as_any_problem(goal, who)
    for bound in problem.subject_to:
        if isinstance(bound, Bound) and bound.excludes_nothing:
            raise ValueError(f"{holds_always(bound)} Leave it out, or choose another level.")
    return problem


def _as_any_problem(goal: GoalLike, who: str) -> Problem:
    if isinstance(goal, str):
        period = names_alerts_per_period(goal)
        if period is not None:
            raise ValueError(BY_TIME.format(period=period))
        goal = read_goal(goal)
    if isinstance(goal, Problem):
        return goal
    targets = (goal,) if isinstance(goal, Target) else tuple(goal) if _listed(goal) else ()
    if not targets or not all(isinstance(target, Target) for target in targets):
        raise TypeError(
            f"{who} takes a Problem, a sentence such as 'minimize fnr subject to fpr <= 0.01', or "
            f"a bound such as fpr <= 0.01; got {goal!r:.100}."
        )
    if any(target.expression.is_about_classes for target in targets):
        return Problem(maximize=rates.accuracy, subject_to=targets)
    if all(target.expression in _FLOORS for target in targets):
        return Problem(minimize=fpr_, subject_to=targets)
    return Problem(maximize=recall, subject_to=targets)


def about_classes(goal: GoalLike) -> Problem | None:
    """The goal for more than two classes, if it asks for accuracy or error and nothing else.

    Rates of classes say of which, and these two are about everyone.

    Examples:
        >>> print(about_classes("accuracy >= 60 %"))
        maximize top_k(1) subject to accuracy >= 0.6
        >>> about_classes("fpr <= 1 %") is None
        True
    """
    given = read_goal(goal) if isinstance(goal, str) else goal
    right, either = rates.top_k(1), (rates.accuracy, rates.error)
    if not isinstance(given, Problem):
        targets = as_targets(given)
        alone = all(target.expression in either for target in targets)
        return Problem(maximize=right, subject_to=targets) if alone else None
    if given.kind != "everyone" or given.swept is not None:
        return None
    if any(expression not in either for expression in given.expressions):
        return None
    return given.changed(objective=right if given.objective == rates.accuracy else 1 - right)


@overload
def evaluate(
    scores: Any,
    labels: Any,
    goal: GoalLike,
    *,
    thresholds: Any = None,
    weights: Any = None,
    groups: Any = None,
    queries: Any = None,
    classes: Any = None,
    outputs: None = None,
    amounts: Any = None,
) -> float: ...
@overload
def evaluate(
    scores: Any,
    labels: Any,
    goal: GoalLike,
    *,
    thresholds: Any = None,
    weights: Any = None,
    outputs: Sequence[str],
) -> dict[str, float]: ...
def evaluate(
    scores: Any,
    labels: Any,
    goal: GoalLike,
    *,
    thresholds: Any = None,
    weights: Any = None,
    groups: Any = None,
    queries: Any = None,
    classes: Any = None,
    outputs: Sequence[str] | None = None,
    amounts: Any = None,
) -> float | dict[str, float]:
    """The true value of a goal's objective on scored data, at hard thresholds.

    Args:
        scores: One score per example, numpy or torch; ``[n, K]`` for a goal about classes,
            ``[n, c]`` for ``c`` binary ``outputs``.
        labels: 0 or 1 for each example; of classes, the column. Rows without a label (NaN, None,
            pandas' ``NA``) are left out.
        goal: A problem, a bound or a sentence; see :func:`as_problem`.
        thresholds: Where to decide; without them the best ones on these very data that meet the
            bounds are taken. Of several outputs one entry each, in their order or by name.
        weights: Weight 2 counts an example twice.
        groups: A column of group values, or a dict of columns, for goals about groups.
        queries: The query of each example, for a goal per query.
        classes: What the columns of the scores are called.
        outputs: Names of binary outputs, the columns of scores and labels: the result is then a
            dict of values by name. Rows whose label of an output is NaN are left out of it.
        amounts: What each row is worth: in ``cost(miss=1, false_alarm=5)`` a miss costs that.

    Raises:
        Infeasible: No threshold meets the bounds.
        ValueError: No row has a label, or scores and labels do not fit.

    Examples:
        >>> import numpy as np
        >>> scores, labels = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 0, 1, 0])
        >>> evaluate(scores, labels, "maximize recall subject to fpr <= 50 %")
        1.0
        >>> evaluate(scores, labels, "maximize recall subject to fpr <= 50 %", thresholds=3.5)
        0.5
        >>> both, truth = np.stack([scores, -scores], 1), np.stack([labels, labels], 1)
        >>> evaluate(both, truth, "maximize recall subject to fpr <= 50 %", outputs=["spam", "ad"])
        {'spam': 1.0, 'ad': 0.5}
    """
    problem = as_problem(goal)
    from setpoint.axes.outputs import columns_of_outputs, of_each

    if outputs is None:
        if len(np.shape(scores)) == 2 and np.shape(scores)[1] > 2:
            problem = about_classes(goal) or problem
        problem, groups = problem.priced(groups, amounts)
        return problem.evaluate(scores, labels, thresholds, weights, groups, queries, classes)
    if amounts is not None:
        raise ValueError("amounts= go with one score: evaluate each output by itself.")
    at, found = of_each(thresholds, outputs), {}
    for name, s, y, w in columns_of_outputs(scores, labels, outputs, weights):
        found[name] = problem.evaluate(s, y, at[name], w)
    return found


def _listed(goal: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(goal, (list, tuple))


@goal
def fnr_at_fpr(level: float) -> Problem:
    """The lowest miss rate with at most this share of false alarms.

    Examples:
        >>> print(fnr_at_fpr(0.01))
        minimize fnr subject to fpr <= 0.01
    """
    return Problem(minimize=fnr_, subject_to=fpr_ <= level)


@goal
def tpr_at_fpr(level: float) -> Problem:
    """The highest detection rate with at most this share of false alarms.

    Examples:
        >>> print(tpr_at_fpr(0.01))
        maximize tpr subject to fpr <= 0.01
    """
    return Problem(maximize=tpr, subject_to=fpr_ <= level)


@goal
def precision_at_recall(level: float) -> Problem:
    """The highest precision that still finds this share of the positives.

    Examples:
        >>> print(precision_at_recall(0.95))
        maximize precision subject to recall >= 0.95
    """
    return Problem(maximize=precision, subject_to=recall >= level)


@goal
def recall_at_precision(level: float) -> Problem:
    """The highest recall whose alerts are right at least this often.

    Examples:
        >>> print(recall_at_precision(0.9))
        maximize recall subject to precision >= 0.9
    """
    return Problem(maximize=recall, subject_to=precision >= level)


@goal
def precision_at_k(k: int, of: int | None = None) -> Problem:
    """The precision of the ``k`` highest scores.

    Args:
        k: How many examples are accepted.
        of: The size of the population ``k`` refers to: ``precision_at_k(100, of=50_000)`` accepts
            0.2 % of whatever is passed in. Without it, ``k`` of what is passed in.

    Examples:
        >>> print(precision_at_k(100))
        maximize precision subject to alerts at 100
        >>> print(precision_at_k(100, of=50_000))
        maximize precision subject to coverage at 0.002
    """
    k = whole(k, "k", least=1)
    if of is None:
        return Problem(maximize=precision, subject_to=alerts.at(k))
    if whole(of, "of", least=1) <= k:
        raise ValueError(f"k must be less than the population it is taken of; got {k} of {of}.")
    return Problem(maximize=precision, subject_to=coverage.at(k / of))


@goal
def roc_auc(
    fpr: tuple[float, float] | None = None,
    points: int = DEFAULT_POINTS,
    *,
    tpr: tuple[float, float] | None = None,
) -> Problem:
    """The area under the ROC curve, over a range of false or of true positive rates.

    Examples:
        >>> print(roc_auc(fpr=(0, 0.05)))
        maximize tpr over fpr in [0, 0.05] with 10 thresholds
        >>> print(roc_auc(tpr=(0.8, 1)))
        maximize tnr over tpr in [0.8, 1] with 10 thresholds
    """
    if tpr is not None:
        _one_axis(fpr, "fpr", "tpr")
        return Problem(maximize=rates.tnr, subject_to=_swept(rates.tpr, tpr), thresholds=points)
    return Problem(maximize=rates.tpr, subject_to=_swept(fpr_, fpr), thresholds=points)


@goal
def pr_auc(
    recall: tuple[float, float] | None = None,
    points: int = DEFAULT_POINTS,
    *,
    precision: tuple[float, float] | None = None,
) -> Problem:
    """The mean precision over a range of recall, or the mean recall over a range of precision.

    Over precision, each level is a floor: the best recall whose alerts are right that often.

    Examples:
        >>> print(pr_auc(precision=(0.9, 1)))
        maximize recall over precision in [0.9, 1] with 10 thresholds
    """
    if precision is not None:
        _one_axis(recall, "recall", "precision")
        over = _swept(rates.precision, precision)
        return Problem(maximize=rates.recall, subject_to=over, thresholds=points)
    over = _swept(rates.recall, recall)
    return Problem(maximize=rates.precision, subject_to=over, thresholds=points)


def _swept(rate: Rate, over: object) -> Range:
    """A rate over a range of two levels; None is all of it."""
    if over is not None and not (_listed(over) and len(over) == 2):
        raise TypeError(
            f"{rate} is swept over a range, such as {rate}=[0, 0.1]; got {over!r:.100}."
        )
    return rate.over(*(over or WHOLE))


def _one_axis(given: object, name: str, other: str) -> None:
    if given is not None:
        raise TypeError(f"An area has one range: give {name}= or {other}=, not both.")
