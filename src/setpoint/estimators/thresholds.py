"""The threshold of a fitted model: certified where the data allow it, chosen otherwise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share
from setpoint.axes.group_cells import cells_of, columns_of, key_of
from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.estimators.goals import Goal, as_problem
from setpoint.estimators.groups import check_grouped
from setpoint.problems import Infeasible, Problem, refuse_queries


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
