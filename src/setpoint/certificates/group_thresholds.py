"""Thresholds per group for goals about gaps: chosen on some rows, to be proved on others.

Thresholds that use up all that is allowed cannot be proved on other rows. So smaller gaps, and less
of what other bounds allow, are asked for: the most for which the rows themselves would prove the
goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from setpoint.axes.group_cells import columns_of
from setpoint.axes.windows import window_of
from setpoint.certificates.certificate import Certificate
from setpoint.certificates.certification import certify
from setpoint.certificates.sample import CannotPromise
from setpoint.problems import Infeasible, Problem
from setpoint.rates import Bound

_SHARES = (1.0, 0.75, 0.5, 0.25)
"""Of the gap allowed, in the order in which they are tried."""
_ROOM = (1.0, 0.9, 0.75, 0.6)
"""Of what other bounds allow, the same."""


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

    They are those for which these rows themselves would prove the goal with a fifth of the error
    probability.

    Args:
        problem: A goal with thresholds per group, about one column.
        scores: Of the rows to choose by.
        labels: 0 or 1 for each.
        groups: The column of groups, or a dict with it.
        confidence: Of the certificate to come.
        clusters: Who a row belongs to.
    """
    if len(columns_of(problem)) > 1:
        return None
    sure = 1 - (1 - confidence) / 5
    alone = all(window_of(target) is not None for target in problem.subject_to)
    for room, factor in product(_ROOM[:1] if alone else _ROOM, _SHARES):
        with suppress(Infeasible, CannotPromise):
            tight = _tightened(problem, factor, room)
            found = tight.choose(scores, labels, groups=groups).thresholds
            given = {"thresholds": found, "groups": groups, "clusters": clusters}
            if certify(scores, labels, problem, confidence=sure, **given).certified:
                return dict(found)
    return None


def certify_groups(
    problem: Problem,
    chosen_on: Sequence[Any],
    proved_on: Sequence[Any],
    *,
    column: str,
    clusters: Sequence[Any] = (None, None),
    **options: Any,
) -> Certificate:
    """Choose thresholds per group on some rows and certify them on others.

    Where no thresholds leave room for a proof, those with the smallest gaps are tried.

    Args:
        problem: A goal with thresholds per group.
        chosen_on: Scores, labels and groups to choose by.
        proved_on: The same of other rows, to certify on.
        column: What the column of groups is called.
        clusters: Who the rows of both belong to.
        **options: Those of :func:`certify`, ``confidence`` among them.

    Raises:
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
    scores, labels, groups = chosen_on
    named = {column: groups}
    sure = options.get("confidence", 0.95)
    how: dict[str, Any] = {"groups": named, "confidence": sure, "clusters": clusters[0]}
    thresholds = thresholds_to_prove(problem, scores, labels, **how)
    for factor in reversed(_SHARES):
        with suppress(Infeasible):
            tight = _tightened(problem, factor)
            thresholds = thresholds or dict(tight.choose(scores, labels, groups=named).thresholds)
    if thresholds is None:
        problem.choose(scores, labels, groups=named)  # says what cannot be reached
    scores, labels, groups = proved_on
    given = {"thresholds": thresholds, "groups": {column: groups}, "clusters": clusters[1]}
    return certify(scores, labels, problem, **given, **options)


def _tightened(problem: Problem, factor: float, room: float = 1.0) -> Problem:
    """The problem with ``factor`` of the gaps between groups, and ``room`` of other bounds."""
    targets = []
    for target in problem.subject_to:
        if isinstance(target, Bound):
            part = room if window_of(target) is None else factor
            allowed = target.level if target.sense == "<=" else 1 - target.level
            level = part * allowed if target.sense == "<=" else 1 - part * allowed
            target = Bound(target.expression, target.sense, level if allowed > 0 else target.level)
        targets.append(target)
    goal = {"maximize" if problem.maximize else "minimize": problem.objective}
    return Problem(**goal, subject_to=targets, thresholds=problem.thresholds)


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
    column = np.asarray(groups)
    own = () if certificate.column is None else (column,)
    accepted = np.asarray(certificate.decide(np.asarray(scores), *own, ids=ids))
    return {group: float(accepted[column == group].mean()) for group in np.unique(column).tolist()}
