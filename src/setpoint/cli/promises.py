"""Told before training: what a goal promises, and whether it can be proved."""

from __future__ import annotations

from setpoint.certificates import CannotPromise
from setpoint.certificates.goals import inequalities, read_goal
from setpoint.cli.common import UserError
from setpoint.problems import Problem
from setpoint.rates import Bound, ClassArea


def check_goal(text: str, problem: Problem, group: str | None, positive: str | None) -> None:
    """A run ends with a certificate: the goal must promise something, at one threshold.

    Goals about several classes need not: their shifts are chosen, and what they keep is measured.
    """
    if problem.kind == "classes":
        _check_classes(text, problem, positive)
    else:
        _check_two(text, problem)
    columns = {column for where in problem.slices for column, _ in where}
    if columns - {group}:
        raise UserError(
            f"--goal {text!r} looks at groups of {', '.join(sorted(columns))}: add --group with "
            "that column (one only)."
        )


def _check_classes(text: str, problem: Problem, positive: str | None) -> None:
    if positive is not None:
        raise UserError(f"--positive is for two classes, and --goal {text!r} is about several.")
    if isinstance(problem.objective, ClassArea):
        raise UserError(
            f"--goal {text!r} is an area: it has no decisions to predict with. Name what they are "
            "judged by, as in 'maximize macro(recall)'."
        )


def _check_two(text: str, problem: Problem) -> None:
    bounds = problem.subject_to
    if not bounds or not all(isinstance(bound, Bound) for bound in bounds):
        advice = "write 'subject to' and bounds, as in 'maximize recall subject to fpr <= 0.01'"
        raise UserError(f"--goal {text!r} promises nothing that can be certified: {advice}.")
    _check_provable(text, problem)
    if problem.thresholds != 1:
        raise UserError(
            f"--goal {text!r} has several thresholds, which training does not take: train for the "
            "goal without them, then `setpoint certify --group` the scores."
        )


def _check_provable(text: str, problem: Problem) -> None:
    """Told before training: a bound that always or never holds cannot be certified after it."""
    try:
        for bound in read_goal(problem).bounds:
            inequalities(bound, None)
    except CannotPromise as refused:
        raise UserError(f"--goal {text!r}: {refused}") from None
