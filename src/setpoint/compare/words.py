"""What went wrong in a trial, in words: rows never hide a failure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.regions import is_plain_share
from setpoint.problems import Problem
from setpoint.rates import Bound, Counts, Setpoint, Target, Where
from setpoint.results.measured import tables_of
from setpoint.train import Fitted

OK = "ok"
MISSED = "missed: "
DIVERGING = "diverging"
"""How a criterion's status begins when its multipliers have left all bounds."""
CANNOT = "cannot express"
AT_RATE = "at the learning rate "


def inexpressible(error: Exception) -> str:
    """Why a method cannot be made for a problem, and who can if it says so."""
    said = " ".join(str(error).split())
    return said if CANNOT in said else f"{CANNOT} it: {said}"


def failed(rate: float, error: Exception) -> str:
    """That training broke off."""
    return f"failed {AT_RATE}{rate:g}: {reason(error)}"


def reason(error: Exception) -> str:
    """What an error says in its first line: some of torch go on with advice about debugging."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def untrained(fitted: Fitted, rate: float) -> str:
    """Why no pass of a training has a validation metric."""
    last, at = _ended(fitted), f"{AT_RATE}{rate:g}"
    if last.startswith("infeasible"):
        return f"{last}: no pass has a threshold that reaches the goal {at}"
    return f"diverged {at}: {last or 'no pass has a validation metric'}"


def ended(fitted: Fitted, status: str) -> str:
    """The status of a trial, after that of its criterion if the multipliers were diverging."""
    last = _ended(fitted)
    if not last.startswith(DIVERGING):
        return status
    return last if status == OK else f"{last}; {status}"


def kind(status: str) -> str:
    """A failure in a word or two, for a cell of a table."""
    if CANNOT in status:
        return f"{CANNOT} it"
    known = ("infeasible", "diverged")
    return next((word for word in known if status.startswith(word)), "failed")


def is_judged(problem: Problem) -> bool:
    """Whether a carried threshold can be found to miss anything: an area has none to carry."""
    return any(map(_can_be_missed, problem.subject_to))


def missed(problem: Problem, accepted: NDArray[np.bool_], labels: NDArray[Any]) -> str:
    """Which target the carried threshold misses on new data; empty if none.

    A bound is missed when it is broken; a setpoint when its rate is more than two standard errors
    away, a share of so many examples as it counts (negatives for fpr, the accepted for precision).
    """
    tables = tables_of(accepted, labels == 1, {})
    for target in filter(_can_be_missed, problem.subject_to):
        if not target.gap(tables) <= _tolerated(target, tables):
            reached = float(target.expression.of(tables))
            return f"{MISSED}{target} became {reached:.4g} with the validation threshold"
    return ""


def _can_be_missed(target: Target) -> TypeGuard[Bound | Setpoint]:
    """Of a setpoint, say of F1, nobody may know how many examples stand behind it."""
    if isinstance(target, Setpoint):
        return is_plain_share(target.expression)
    return isinstance(target, Bound)


def _tolerated(target: Bound | Setpoint, tables: Mapping[Where, Counts]) -> float:
    if not isinstance(target, Setpoint) or not is_plain_share(target.expression):
        return 0.0
    among = float(target.expression.denominator.of(tables[()]))
    return 2 * math.sqrt(target.level * (1 - target.level) / among) if among else 0.0


def _ended(fitted: Fitted) -> str:
    return str(fitted.history[-1]["status"]) if fitted.history else ""
