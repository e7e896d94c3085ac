"""Who shares a threshold: everyone, or each group by itself.

With a threshold per group a bound that names no group holds in every group, a bound that names one
group holds there, and a bound between groups (a gap) is tested at the thresholds that the others
have led to. Everyone is the case of one group that has no column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint.axes.arrays import as_array
from setpoint.certificates.goals import CertificateGoal
from setpoint.rates import Bound, Value, Where

_MOST_GROUPS = 1000


@dataclass(frozen=True)
class GroupGoals:
    """The goal of everyone who shares a threshold, and the bounds between them."""

    column: str | None
    goals: Mapping[Value | None, CertificateGoal]
    """By group; ``{None: goal}`` if there is one threshold for everyone."""
    between: tuple[Bound, ...] = ()

    def where(self, group: Value | None) -> Where:
        """The slice of a group."""
        return () if self.column is None or group is None else ((self.column, group),)

    @property
    def wheres(self) -> list[Where]:
        """The slice of every group."""
        return [self.where(group) for group in self.goals]

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds: those of every group, then those between groups."""
        return (*(bound for goal in self.goals.values() for bound in goal.bounds), *self.between)


def goals_by_group(goal: CertificateGoal, groups: Any, *, given: bool) -> GroupGoals:
    """Read which groups have a threshold of their own, and what each must satisfy.

    Args:
        goal: What was asked for.
        groups: A column, a dict of columns, or None.
        given: Whether thresholds are given; else every group needs a bound.
    """
    per_group = goal.per_group
    if per_group is None:
        per_group = groups is not None and not goal.wheres
    if not per_group:
        if groups is not None and not goal.wheres:
            raise ValueError(
                f"`{goal.text}` looks at no group. For one threshold for each group add "
                "thresholds=\"per group\" to the problem ('... with thresholds per group')."
            )
        return GroupGoals(None, {None: goal})
    if groups is None:
        raise ValueError(f"`{goal.text}` has one threshold for each group: pass groups=.")
    name, column = _group_column(goal, groups)
    return split_goal(goal, name, _group_values(column, name), given=given)


def split_goal(
    goal: CertificateGoal,
    column: str,
    values: list[Value],
    *,
    given: bool = False,
    inner: bool = False,
) -> GroupGoals:
    """The bounds of every group: those that name none, and those that name it alone.

    Args:
        goal: What was asked for.
        column: The column of groups.
        values: The groups.
        given: Whether thresholds are given; else every group needs a bound.
        inner: Whether bounds may name slices within each group: outputs.
    """
    goals: dict[Value | None, CertificateGoal] = {}
    own = {bound: {rate.where for rate in bound.expression.rates()} for bound in goal.bounds}
    if inner:  # what matters is which output a bound names
        own = {
            bound: {tuple(pair for pair in where if pair[0] == column) for where in wheres}
            for bound, wheres in own.items()
        }
    everyone = [bound for bound, wheres in own.items() if wheres == {()}]
    for value in values:
        bounds = [
            Bound(bound.expression.on(**{column: value}), bound.sense, bound.level)
            for bound in everyone
        ]
        bounds += [bound for bound, wheres in own.items() if wheres == {((column, value),)}]
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
    return GroupGoals(column, goals, between)


def _group_column(goal: CertificateGoal, groups: Any) -> tuple[str, Any]:
    """The name and the values of the one column of groups."""
    names = {column for where in goal.wheres for column, _ in where}
    if not isinstance(groups, Mapping):
        return (names.pop() if len(names) == 1 else "group"), groups
    if len(groups) != 1:
        raise ValueError(
            "One threshold for each group needs one column; groups has: "
            f"{', '.join(map(str, groups)) or 'none'}."
        )
    ((name, column),) = groups.items()
    return str(name), column


def _group_values(column: Any, name: str) -> list[Value]:
    """The groups that occur, each a plain value."""
    array = as_array(column, name).reshape(-1)
    values = np.unique(array).tolist() if array.dtype.kind != "O" else list(dict.fromkeys(array))
    for value in values:
        if not isinstance(value, (str, int, float, bool)) or value != value:
            raise TypeError(f"{name} holds {value!r}; groups are told apart by strings or numbers.")
    if len(values) > _MOST_GROUPS:
        raise ValueError(
            f"{name} has {len(values):,} different values: is it a column of groups? "
            "Clusters (several rows of one customer) go into clusters=."
        )
    return values
