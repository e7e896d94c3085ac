"""One threshold per group: whose threshold decides which row, and what to do with strangers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.group_cells import cells_of, columns_of, key_of
from setpoint.axes.group_choice import codes_of
from setpoint.axes.windows import window_of
from setpoint.certificates import CannotPromise, certify
from setpoint.problems import Infeasible, Problem
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
