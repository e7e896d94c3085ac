"""One threshold per group: whose threshold decides which row, and what to do with strangers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share
from setpoint.axes.group_cells import cells_of, codes_of, columns_of, key_of
from setpoint.axes.windows import window_of
from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.estimators.inputs import Goal, as_problem
from setpoint.problems import Infeasible, Problem, refuse_queries
from setpoint.rates import Bound

UNSEEN = ("error", "highest", "lowest")
"""What may be done with a group that has no threshold."""


def check_grouped(problem: Problem, unseen: str) -> None:
    """A goal with one threshold per group must name the groups."""
    if unseen not in UNSEEN:
        known = ", ".join(map(repr, UNSEEN))
        raise ValueError(f"unseen must be one of {known}; got {unseen!r}.")
    if problem.kind == "groups" and not cells_of(problem):
        raise ValueError(
            f"`{problem}` names no group to find a threshold for. Name them, as in "
            'demographic_parity(0.02, sex=["f", "m"]).'
        )


def cautious(
    problem: Problem, scores: Any, labels: Any, groups: Any, confidence: float
) -> dict[Any, float] | None:
    """Thresholds of groups with room for a proof on other data; None if there are none.

    At thresholds chosen for exactly the gap allowed, nobody can prove that gap. So less is asked,
    as little less as these rows would themselves take for a proof, with some confidence to spare.
    """
    if len(columns_of(problem)) > 1:
        return None
    sure = 1 - (1 - confidence) / 5
    for factor in (1.0, 0.75, 0.5, 0.25):
        found = _proved(problem, factor, scores, labels, groups, sure)
        if found is not None:
            return found
    return None


def _proved(
    problem: Problem, factor: float, scores: Any, labels: Any, groups: Any, confidence: float
) -> dict[Any, float] | None:
    """Thresholds for tighter gaps, if these rows would prove the gaps that are asked for."""
    try:
        found = tightened(problem, factor).choose(scores, labels, groups=groups).thresholds
        options = {"confidence": confidence, "groups": groups, "thresholds": found}
        return dict(found) if certify(scores, labels, problem, **options).certified else None
    except (Infeasible, CannotPromise):
        return None


def tightened(problem: Problem, factor: float) -> Problem:
    """The problem with gaps between groups at most ``factor`` times as wide."""
    targets = []
    for target in problem.subject_to:
        window = window_of(target)
        if window is not None and isinstance(target, Bound):
            width = factor * (target.level if target.sense == "<=" else 1 - target.level)
            level = width if target.sense == "<=" else 1 - width
            target = Bound(target.expression, target.sense, level)
        targets.append(target)
    goal = {"maximize" if problem.maximize else "minimize": problem.objective}
    return Problem(**goal, subject_to=targets, thresholds=problem.thresholds)


def thresholds_of_rows(
    problem: Problem, thresholds: Mapping[Any, float], groups: Any, rows: int, unseen: str
) -> NDArray[np.float64]:
    """The threshold of every row, that of its group.

    Args:
        problem: The goal, which names the groups.
        thresholds: By group.
        groups: The column of groups, or a dict of columns.
        rows: How many rows there are.
        unseen: ``"error"``, or whose threshold a group without one gets: the ``"highest"`` or the
            ``"lowest"`` of all.
    """
    if groups is None:
        raise ValueError(
            "There is one threshold for each group, so predict and decision_function need to know "
            "them: predict(X, groups=...)."
        )
    wheres, codes = codes_of(problem, groups, np.zeros(rows))
    known = [thresholds.get(key_of(where), np.nan) for where in wheres]
    found = np.append(known, np.nan)[codes]  # the last is for groups that are not named
    strangers = np.isnan(found)
    if strangers.any() and unseen == "error":
        row = int(strangers.argmax())
        names = ", ".join(map(repr, thresholds))
        raise ValueError(
            f"Row {row} is of a group without a threshold; there are thresholds for {names}. Leave "
            "such rows out, or say what to do with them: unseen='highest' (or 'lowest')."
        )
    fallback = max(thresholds.values()) if unseen == "highest" else min(thresholds.values())
    return np.where(strangers, fallback, found)


# ------------------------------------------------------------------------------------------------
# The threshold of a fitted model: certified where the data allow it, chosen otherwise.


class NotCertifiedWarning(UserWarning):
    """The threshold in use carries no promise for new data."""


def read_goal(goal: Goal, unseen: str = "error") -> Problem:
    """A goal that one threshold can serve, or one for each group."""
    problem = as_problem(goal)
    refuse_queries(problem.query, "A classifier")
    if problem.swept is not None:
        raise ValueError(
            f"`{problem}` is an area: it has no single threshold to decide with. Name the "
            "operating point, such as 'maximize precision subject to recall >= 0.95'."
        )
    check_grouped(problem, unseen)
    return problem


def chosen(
    problem: Problem, scores: Any, labels: Any, weights: Any = None, groups: Any = None
) -> Any:
    """The threshold that is best on these very data: no promise for others.

    Where none reaches the targets, the one that accepts nobody. With one for each group, a dict.
    """
    try:
        choice = problem.choose(scores, labels, weights=weights, groups=groups)
        grouped = problem.kind == "groups"
        return dict(choice.thresholds) if grouped else float(choice.thresholds[0])
    except Infeasible as error:
        warnings.warn(f"{error} Nobody is accepted.", NotCertifiedWarning, stacklevel=4)
        nobody = float(np.max(scores))
        if problem.kind == "groups":
            return {key_of(where): nobody for where in cells_of(problem)}
        return nobody


@dataclass(frozen=True)
class Promise:
    """A certificate with its threshold, or the reason why there is none."""

    certificate: Certificate | None = None
    threshold: Any = None
    reason: str = ""


def promised(
    problem: Problem,
    scores: NDArray[Any],
    labels: NDArray[np.int64],
    confidence: float,
    groups: Any = None,
    thresholds: Any = None,
) -> Promise:
    """What can be proved on calibration data.

    A goal that nobody can promise (an exact value) and data that prove nothing (copies of rows)
    are no errors: they leave a model that works, without a certificate. Thresholds of groups are
    chosen on other data and proved here.
    """
    confidence = share(confidence, "confidence", ends=False)
    if thresholds is not None and len(columns_of(problem)) > 1:
        return Promise(reason="with thresholds per group it is about one column of groups.")
    options = {"confidence": confidence, "groups": groups, "thresholds": thresholds}
    try:
        certificate = certify(scores, labels, problem, **options)
    except CannotPromise as refused:
        return Promise(reason=str(refused))
    if thresholds is not None and certificate.certified:
        return Promise(certificate, thresholds)
    if certificate.certified:
        return Promise(certificate, certificate.threshold)
    return Promise(certificate, reason="; ".join([certificate.status, *certificate.notes]) + ".")


def warn_not_certified(
    reason: str, used: str = "The threshold is the best one", depth: int = 4
) -> None:
    """Say that what is used to decide is only the best on the data at hand."""
    warnings.warn(
        f"No certificate: {reason} {used} on the data at hand, without a promise for new data.",
        NotCertifiedWarning,
        stacklevel=depth,
    )
