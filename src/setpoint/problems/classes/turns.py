"""In which order shifts are put into place."""

from __future__ import annotations

import numpy as np

from setpoint.problems.classes.data import Whole
from setpoint.problems.classes.quotas import shared_out
from setpoint.problems.classes.settle import settle
from setpoint.problems.classes.sweep import Sweep
from setpoint.problems.classes.transport import transport
from setpoint.problems.problem import Problem
from setpoint.rates import Across

ROUNDS = 3
"""Passes over the classes; the first does most of the work."""


def share_out(search: Sweep, wanted: dict[int, float], free: Whole) -> None:
    """Coverage targets: the others settle among themselves, then all is dealt out exactly."""
    data = search.data
    kept = np.array(sorted(wanted), int)
    for _ in range(2 if len(free) > 1 else 0):
        rows = np.flatnonzero(np.isin(search.held, free))
        search.improve(free, rows, ROUNDS)
        shifted = data.scores - search.shifts
        scores = np.column_stack([data.scores[:, kept], shifted[:, free].max(1)])
        rest = {place: wanted[column] for place, column in enumerate(kept)}
        quotas = shared_out(rest, np.append(data.truth[kept], 1.0), data.weights)
        dealt = transport(scores, quotas, data.weights)
        whose = free[np.argmax(shifted[:, free], axis=1)]
        search.held = np.where(dealt < len(kept), np.append(kept, 0)[dealt], whose)
        search.shifts = settle(data.scores, search.held)[0]


def smoother(problem: Problem) -> Problem | None:
    """The mean over classes in place of the lowest: the way there has fewer dead ends."""
    objective = problem.objective
    if not isinstance(objective, Across) or objective.kind == "macro":
        return None
    mean = Across("macro", objective.inner)
    made = type(problem)
    return made(maximize=mean) if problem.maximize else made(minimize=mean)


def freely(search: Sweep, columns: Whole, everyone: Whole, problem: Problem | None) -> None:
    """The best shifts if there were no targets: from there it is not far to keep them."""
    if problem is None:
        return
    kept = search.problem, search.targets
    search.problem, search.targets = problem, []
    search.improve(columns, everyone, ROUNDS)
    search.problem, search.targets = kept


def take_turns(search: Sweep, own: set[int], free: Whole) -> None:
    """Classes with targets against all others, then the others among themselves."""
    columns, everyone = np.arange(len(search.shifts)), np.arange(len(search.data.scores))
    held = np.array(sorted(own), int)
    for turn in range(2 * ROUNDS):
        for _ in range(2 * len(held)):
            turns = [search.move(i, columns, everyone) for i in search.order(held)]
            if not any(turns):
                break
        search.shifts = settle(search.data.scores, search.held)[0]  # from here others may be best
        if turn < ROUNDS and len(free) > 1:
            search.improve(free, np.flatnonzero(np.isin(search.held, free)), 1)
            search.decide()
        elif turn and not any(turns):
            break
