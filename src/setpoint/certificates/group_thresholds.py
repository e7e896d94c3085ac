"""Thresholds per group for goals about gaps: chosen on some rows, to be proved on others.

Thresholds that use up all that is allowed cannot be proved on other rows. So smaller gaps, and less
of what other bounds allow, are asked for: the most for which the rows themselves would prove the
goal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from setpoint.certificates.certificate import Certificate
from setpoint.certificates.certification import certify
from setpoint.certificates.decisions import exceeds_by_group
from setpoint.certificates.goals import goal_to_certify, refuse_trivial
from setpoint.certificates.sample import CannotPromise
from setpoint.problems import PER_GROUP, GoalLike, Infeasible, Problem, as_problem
from setpoint.rates import Bound

_SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)
"""Of the gap allowed, in the order in which they are tried."""
_ROOM = (1.0, 0.9, 0.75, 0.6)
"""Of what other bounds allow, the same."""
_RISK = 0.01
"""Of the error probability: other rows prove what these prove with so little in nine of ten cases.

With 0.2 it was six of ten.
"""


def thresholds_to_prove(
    problem: Problem,
    scores: Any,
    labels: Any,
    *,
    groups: Any,
    confidence: float = 0.95,
    clusters: Any = None,
) -> dict[Any, float] | None:
    """Thresholds by group that leave room for a proof on other rows; None if there are none.

    They are those for which these rows themselves would prove the goal with a hundredth of the
    error probability.

    Args:
        problem: A goal with thresholds per group, about one column.
        scores: Of the rows to choose by.
        labels: 0 or 1 for each.
        groups: The column of groups, or a dict with it.
        confidence: Of the certificate to come.
        clusters: Who a row belongs to.
    """
    if len(problem.columns) > 1:
        return None
    sure = 1 - _RISK * (1 - confidence)
    for tight in _tightened(problem):
        with suppress(Infeasible, CannotPromise):
            found = tight.choose(scores, labels, groups=groups).thresholds
            given = {"thresholds": found, "groups": groups, "clusters": clusters}
            if certify(scores, labels, problem, confidence=sure, **given).certified:
                return dict(found)
    return None


def certify_groups(
    problem: GoalLike,
    chosen_on: Sequence[Any],
    proved_on: Sequence[Any],
    *,
    column: str,
    clusters: Sequence[Any] = (None, None),
    **options: Any,
) -> Certificate:
    """Choose thresholds per group on some rows and certify them on others.

    Where no thresholds leave room for a proof, those with the most are tried.

    Args:
        problem: A goal with thresholds per group.
        chosen_on: Scores, labels and groups to choose by.
        proved_on: The same of other rows, to certify on.
        column: What the column of groups is called.
        clusters: Who the rows of both belong to.
        **options: Those of :func:`certify`, ``confidence`` among them.

    Raises:
        CannotPromise: Accepting nobody, or everybody, keeps the goal as well as can be.
        Infeasible: No thresholds reach the goal on the first rows.

    Examples:
        >>> import numpy as np
        >>> from setpoint import Problem, error
        >>> from setpoint.fairness import demographic_parity
        >>> random = np.random.default_rng(0)
        >>> sex = random.choice(["f", "m"], 8000)
        >>> y = random.random(8000) < 0.3
        >>> scores = random.normal(size=8000) + 2 * y + 0.3 * (sex == "m")
        >>> fair = demographic_parity(0.1, sex=["f", "m"])
        >>> problem = Problem(minimize=error, subject_to=fair, thresholds="per group")
        >>> first, rest = ((scores[i], y[i], sex[i]) for i in (slice(4000), slice(4000, None)))
        >>> certify_groups(problem, first, rest, column="sex").status
        'certified'
    """
    problem = as_problem(problem, "certify_groups")
    refuse_trivial(goal_to_certify(problem))
    scores, labels, groups = chosen_on
    named = {column: groups}
    sure = options.get("confidence", 0.95)
    how: dict[str, Any] = {"groups": named, "confidence": sure, "clusters": clusters[0]}
    thresholds = thresholds_to_prove(problem, scores, labels, **how)
    for tight in [] if thresholds else reversed(list(_tightened(problem))):
        with suppress(Infeasible):
            thresholds = dict(tight.choose(scores, labels, groups=named).thresholds)
            break
    if thresholds is None:
        problem.choose(scores, labels, groups=named)  # says what cannot be reached
    scores, labels, groups = proved_on
    given = {"thresholds": thresholds, "groups": {column: groups}, "clusters": clusters[1]}
    return certify(scores, labels, problem, **given, **options)


def _tightened(problem: Problem) -> Iterator[Problem]:
    """The problem with less and less of the gaps between groups, and of what other bounds allow."""
    from setpoint.axes.windows import window_of

    alone = all(window_of(target) is not None for target in problem.subject_to)
    for room, factor in product(_ROOM[:1] if alone else _ROOM, _SHARES):
        targets = []
        for target in problem.subject_to:
            if isinstance(target, Bound):
                part = room if window_of(target) is None else factor
                allowed = target.level if target.sense == "<=" else 1 - target.level
                level = part * allowed if target.sense == "<=" else 1 - part * allowed
                level = level if allowed > 0 else target.level
                target = Bound(target.expression, target.sense, level)
            targets.append(target)
        goal = {"maximize" if problem.maximize else "minimize": problem.objective}
        yield Problem(**goal, subject_to=targets, thresholds=problem.thresholds)


def approval_rates(
    certificate: Certificate, scores: Any, groups: Any, ids: Any = None
) -> dict[Any, float]:
    """The share of rows above the threshold in every group, in the order of their names.

    Examples:
        >>> from setpoint import certify
        >>> labels = np.arange(3000) % 3 == 0
        >>> scores = np.random.default_rng(0).normal(size=3000) + 3 * labels
        >>> half = np.where(np.arange(3000) < 1500, "f", "m")
        >>> list(approval_rates(certify(scores, labels, "fpr <= 0.05"), scores, half))
        ['f', 'm']
    """
    own = () if certificate.column is None else (np.asarray(groups),)
    return _shares(certificate.decide(np.asarray(scores), *own, ids=ids), groups)


def _shares(accepted: Any, groups: Any) -> dict[Any, float]:
    column = np.asarray(groups)
    return {group: float(accepted[column == group].mean()) for group in np.unique(column).tolist()}


def approvals(
    certificate: Certificate,
    column: str,
    scores: Any,
    labels: Any,
    groups: Any,
    *,
    ids: Any = None,
    rows: str = "",
) -> Iterator[str]:
    """A sentence on the share of every group that is above the threshold, certified or not.

    Where nothing is certified it is about thresholds that were given, or else, for a goal about
    groups, about the threshold that is best on these rows.

    Args:
        certificate: Of one threshold, or one for each group.
        column: What the column of groups is called.
        scores: Of the rows to count.
        labels: Theirs, or None.
        groups: The group of each row.
        ids: Their ids, if ties are broken by lot.
        rows: Which rows these are, as in ``" (test rows)"``.
    """
    points = [(p.group, p.threshold) for p in certificate.points]
    own = {g: t for g, t in points if g is not None and t is not None}
    which = "the threshold"
    if certificate.certified:
        rates = approval_rates(certificate, scores, groups, ids)
    elif own:
        which = "the thresholds that are not proved"
        rates = _shares(exceeds_by_group(scores, groups, own, column, certificate.dtype), groups)
    else:
        problem = as_problem(certificate.goal)
        if labels is None or not any(problem.slices) or problem.thresholds == PER_GROUP:
            return
        try:
            best = problem.choose(scores, labels, groups={column: groups}).thresholds[0]
        except Infeasible as error:
            yield f"No threshold keeps the goal on these rows themselves: {error}"
            return
        which = "the threshold that is best on these rows, not proved,"
        rates = _shares(np.asarray(scores) > best, groups)
    shown = ", ".join(f"{group!r} {100 * rate:.1f} %" for group, rate in rates.items())
    yield f"Above {which} by {column}{rows}: {shown}."
