"""A goal as users write it: a problem, a sentence, or only what must hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from setpoint.certificates.goals import read_goal as read_promise
from setpoint.problems import Problem
from setpoint.rates import Bound, fnr, fpr, npv, recall, tpr

Goal = str | Problem | Bound | Sequence[Bound]
_BOUND = re.compile(r"\s*(?!minimize|maximize).*(<=|>=)")
FLOORS = {recall, tpr, fnr, npv}
"""Rates whose bound asks for alerts: what is left to wish for is that they are few."""


def as_problem(goal: Goal) -> Problem:
    """Bounds alone become a problem: find the most, or where recall is bounded, alarm the least.

    >>> print(as_problem("fpr <= 0.01"))
    maximize recall subject to fpr <= 0.01
    >>> print(as_problem(recall >= 0.95))
    minimize fpr subject to recall >= 0.95
    """
    if isinstance(goal, Problem):
        return goal
    if isinstance(goal, str) and not _BOUND.match(goal):
        return Problem.parse(goal)
    if not isinstance(goal, (str, Bound, tuple, list)):
        raise TypeError(
            "goal must be a Problem, a sentence such as 'minimize fnr subject to fpr <= 0.01', or "
            f"a bound such as 'fpr <= 0.01'; got {goal!r}."
        )
    bounds = read_promise(goal).bounds
    if all(bound.expression in FLOORS for bound in bounds):
        return Problem(minimize=fpr, subject_to=bounds)
    return Problem(maximize=recall, subject_to=bounds)
