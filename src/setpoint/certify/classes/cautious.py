"""Shifts with room for a proof on other data.

At shifts that just meet a bound where they were chosen, hardly anybody can prove it elsewhere. So
more is asked: as much as these rows would themselves take for a proof, with confidence to spare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint._checks import share
from setpoint.certify.classes.counted import Counted, counted
from setpoint.certify.classes.prove import unprovable
from setpoint.problems import Infeasible, Problem
from setpoint.problems.classes import best_shifts
from setpoint.problems.classes.data import Floats
from setpoint.problems.classes.evaluate import choose_classes
from setpoint.rates import Bound

ROUNDS = 4
"""How often more is asked: how many are predicted, and so what a proof takes, moves with it."""
SPARES = (50, 5, 1)
"""How many times less risk the shifts are chosen for than they are proved with, as far as there are
such shifts. Both samples err: where they are of one size, and 95 % are asked for, 50 times less
(3.1 standard errors of room instead of 1.6) are proved in about 85 of 100 cases, 5 times in 69."""


def shifts_to_prove(
    problem: Problem,
    scores: Any,
    labels: Any,
    *,
    confidence: float,
    groups: Any = None,
    classes: Sequence[Any],
) -> tuple[Floats, str]:
    """As :func:`best_shifts`, with room for a proof of the bounds if there are such shifts."""
    risk = 1 - share(confidence, "confidence", ends=False)
    given = {"groups": groups, "classes": classes}
    best = best_shifts(problem, scores, labels, **given)
    if best[1] or unprovable(problem):
        return best
    for tail in (risk / spare for spare in SPARES):
        found = _with_room(problem, scores, labels, best[0], tail, given)
        if found is not None:
            return found, ""
    return best


def _with_room(
    problem: Problem, scores: Any, labels: Any, shifts: Floats, tail: float, given: dict[str, Any]
) -> Floats | None:
    """Shifts whose bounds these rows would prove; None if none are found."""
    asked: dict[Bound, float] = {}
    for _ in range(ROUNDS):
        shares = counted(problem, scores, labels, shifts, **given)
        needs = {bound: _needed(bound, own, tail) for bound, own in shares.items()}
        if all(one.holds(one.proved(tail)) for own in shares.values() for one in own):
            return shifts
        levels = {bound: level for bound, level in needs.items() if level is not None}
        if len(levels) < len(needs):
            return None
        asked = {bound: _stricter(bound, asked, level) for bound, level in levels.items()}
        try:
            more = _asking(problem, asked)
            choice = choose_classes(more, scores, labels, None, given["groups"], given["classes"])
        except Infeasible:
            return None
        shifts = np.asarray(choice.thresholds)
    return None


def _needed(bound: Bound, shares: list[Counted], tail: float) -> float | None:
    """The level at which all the shares of a bound would be proved; None: there is none."""
    levels = [one.provable(tail) for one in shares]
    known = [level for level in levels if level is not None]
    if len(known) < len(levels):
        return None
    return min(known) if bound.sense == "<=" else max(known)


def _stricter(bound: Bound, before: Mapping[Bound, float], level: float) -> float:
    pick = min if bound.sense == "<=" else max
    return pick(before.get(bound, bound.level), level)


def _asking(problem: Problem, levels: Mapping[Bound, float]) -> Problem:
    """The problem with other levels of its bounds."""
    bounds = [Bound(b.expression, b.sense, level) for b, level in levels.items()]
    goal: dict[str, Any] = {"maximize" if problem.maximize else "minimize": problem.objective}
    return Problem(**goal, subject_to=bounds)
