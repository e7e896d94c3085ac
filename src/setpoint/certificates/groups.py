"""One threshold per group: every group proves its own bounds, then come the bounds between groups.

The groups' promises hold together (each gets an equal part of ``delta``). A bound that names no
group holds in every group. A bound between groups (a gap) is tested at the thresholds found: ranks
fixed in advance, so that the shares behind the gap are independent and known up to their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.evidence import Place
from setpoint.certificates.fixed_thresholds import holds, prove_there
from setpoint.certificates.goals import Goal, atoms
from setpoint.certificates.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED
from setpoint.certificates.sample import Sample, signs
from setpoint.certificates.search import Found, Proved, search
from setpoint.rates import Bound, Value, Where

MOST = 1000


@dataclass(frozen=True)
class Split:
    """A goal by group, and what is asked between groups."""

    column: str
    goals: Mapping[Value, Goal]
    between: tuple[Bound, ...]

    def where(self, value: Value) -> Where:
        """The slice of a group."""
        return ((self.column, value),)


def split(goal: Goal, column: str, values: list[Value], *, given: bool = False) -> Split:
    """The bounds of every group: those that name none, and those that name it alone.

    With ``given`` thresholds a group needs none of its own.
    """
    goals: dict[Value, Goal] = {}
    own = {bound: {rate.where for rate in bound.expression.rates()} for bound in goal.bounds}
    everyone = [bound for bound, wheres in own.items() if wheres == {()}]
    for value in values:
        where = ((column, value),)
        bounds = [
            Bound(bound.expression.on(**{column: value}), bound.sense, bound.level)
            for bound in everyone
        ]
        bounds += [bound for bound, wheres in own.items() if wheres == {where}]
        if not bounds and not given:
            raise ValueError(
                f"No bound decides the threshold of {column} = {value!r}: add one, or pass "
                "thresholds= that were chosen on other data."
            )
        objective = goal.objective
        if objective is not None and not any(rate.where for rate in objective.rates()):
            objective = objective.on(**{column: value})
        text = " and ".join(map(str, bounds))
        goals[value] = replace(goal, bounds=tuple(bounds), objective=objective, text=text)
    alone = [{()}, *({((column, value),)} for value in values)]
    between = tuple(bound for bound, wheres in own.items() if wheres not in alone)
    return Split(column, goals, between)


def group_values(column: NDArray[Any], name: str) -> list[Value]:
    """The groups there are, each a plain value."""
    values = np.unique(column).tolist() if column.dtype.kind != "O" else list(dict.fromkeys(column))
    for value in values:
        if not isinstance(value, (str, int, float, bool)) or value != value:
            raise TypeError(f"{name} holds {value!r}; groups are told apart by strings or numbers.")
    if len(values) > MOST:
        raise ValueError(
            f"{name} has {len(values):,} different values: is it a column of groups? "
            "Clusters (several rows of one customer) go into clusters=."
        )
    return values


def search_groups(
    goal: Split, sample: Sample, delta: float, prevalence: float | None, mean: bool
) -> tuple[Found, dict[Where, Place]]:
    """The verdict on all groups together, and the place of each if it is certified."""
    if mean and goal.between:
        raise ValueError('guarantee="mean" does not hold between groups. Use guarantee="pac".')
    tail = delta / (len(goal.goals) + bool(goal.between))
    found = {
        value: search(each, sample, tail, prevalence, mean) for value, each in goal.goals.items()
    }
    statuses = {each.status for each in found.values()}
    notes = tuple(note for each in found.values() for note in each.notes)
    proved = {atom: known for each in found.values() for atom, known in each.proved.items()}
    if statuses != {CERTIFIED}:
        status = INFEASIBLE if INFEASIBLE in statuses else NOT_CERTIFIED
        return Found(status, None, proved, notes), {}
    places = {goal.where(value): each.place for value, each in found.items() if each.place}
    between, notes = _between(goal, sample, places, tail, prevalence)
    if notes:
        return Found(NOT_CERTIFIED, None, proved | between, notes), {}
    return Found(CERTIFIED, None, proved | between), places


def _between(
    goal: Split,
    sample: Sample,
    places: Mapping[Where, Place],
    delta: float,
    prevalence: float | None,
) -> tuple[Proved, tuple[str, ...]]:
    """Test the bounds between groups at the thresholds found."""
    every = [atom for bound in goal.between for atom in atoms(bound, prevalence)]
    for atom in every:
        for part in signs(atom.bound.expression, prevalence):
            if part.where not in places:
                raise ValueError(
                    f"With one threshold per {goal.column}, bounds name values of {goal.column} "
                    f"only; got `{atom.source}`."
                )
    values, _ = prove_there(every, sample, places.__getitem__, delta, prevalence)
    found: Proved = {atom: (value, "") for atom, value in zip(every, values, strict=True)}
    notes = []
    for atom, value in zip(every, values, strict=True):
        if not holds(atom, value):
            side = "at most" if atom.bound.sense == "<=" else "at least"
            notes.append(f"`{atom.source}` is not proved: {side} {value:.4g} is")
    return found, tuple(notes)
