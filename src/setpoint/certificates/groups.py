"""Who shares a threshold: everyone, or each group by itself.

With a threshold per group a bound that names no group holds in every group, a bound that names one
group holds there, and a bound between groups (a gap) is tested at the thresholds that the others
have led to. Everyone is the case of one group that has no column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.axes.arrays import as_array
from setpoint.certificates.goals import CertificateGoal
from setpoint.certificates.proofs import CERTIFIED, SearchVerdict, values_at
from setpoint.certificates.sample import CalibrationSample
from setpoint.certificates.text import value_text
from setpoint.rates import Bound, Expression, Fold, Value, Where

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Estimate

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
    pieces = goal.bounds if given else [each for bound in goal.bounds for each in _pieces(bound)]
    own = {bound: _wheres(bound) for bound in pieces}
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


def _pieces(bound: Bound) -> list[Bound]:
    """A bound on the worst of several rates as one on each of them."""
    e = bound.expression
    if isinstance(e, Fold) and (e.kind, bound.sense) in (("max", "<="), ("min", ">=")):
        return [Bound(part, bound.sense, bound.level) for part in e.parts]
    return [bound]


def _group_column(goal: CertificateGoal, groups: Any) -> tuple[str, Any]:
    """The name and the values of the one column of groups."""
    names = goal.columns
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


def advice_per_group(
    goal: CertificateGoal,
    found: SearchVerdict,
    sample: CalibrationSample,
    objective: tuple[Estimate, ...],
) -> Iterator[str]:
    """That each group may have its own threshold, if one for all does not keep a gap, or dearly.

    Dearly: without the gap the best objective on these rows is outside the interval of this one.

    Args:
        goal: What was asked for.
        found: The verdict.
        sample: The rows.
        objective: What the threshold reaches, if there is one.
    """
    column = _compared_column(goal)
    if column is None:
        return
    aim = "minimize error"
    if goal.objective is not None:
        aim = f"{'maximize' if goal.maximize else 'minimize'} {goal.objective}"
    cure = f"'{aim} subject to ... with thresholds per group' gives each {column} its own."
    if found.status != CERTIFIED:
        yield f"This is one threshold for all: {cure}"
    elif goal.objective is not None and objective:
        here, best = objective[0], _best_without_gaps(goal, goal.objective, sample)
        if best > here.high if goal.maximize else best < here.low:
            now, then = (value_text(here.name, value) for value in (here.value, best))
            yield f"With one threshold for all {here.name} is {now}, without the gap {then}: {cure}"


def _compared_column(goal: CertificateGoal) -> str | None:
    """The one column whose groups a goal with one threshold for all compares, if it does."""
    wheres = {where for bound in goal.bounds if _is_between(bound) for where in _wheres(bound)}
    columns = {column for where in wheres for column, _ in where}
    one = len(columns) == 1 and all(len(where) == 1 for where in wheres) and not goal.per_group
    return columns.pop() if one else None


def _wheres(bound: Bound) -> set[Where]:
    return {rate.where for rate in bound.expression.rates()}


def _is_between(bound: Bound) -> bool:
    """Whether a bound compares slices."""
    return len(_wheres(bound)) > 1


def _best_without_gaps(
    goal: CertificateGoal, objective: Expression, sample: CalibrationSample
) -> float:
    """The best objective of these rows if bounds that compare groups are left out."""
    at = np.unique(np.quantile(sample.scores, np.linspace(0, 1, 1001), method="lower"))
    allowed = np.ones(len(at), bool)
    with np.errstate(all="ignore"):
        for bound in goal.bounds:
            if not _is_between(bound):
                seen = values_at(bound.expression, sample, at)
                allowed &= seen <= bound.level if bound.sense == "<=" else seen >= bound.level
        values = np.where(allowed, values_at(objective, sample, at), np.nan)
    return float((np.fmax if goal.maximize else np.fmin).reduce(values))
