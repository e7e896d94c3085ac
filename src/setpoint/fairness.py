"""Fairness by the names people know it by, for any number of groups and their intersections.

Groups are named by their column and its values, ``sex=["f", "m"]``; several columns stand for all
intersections of their values. What comes out is the ordinary language: the sentence of a problem
says it with ``max``, ``min`` and ``on``, and reads back.

Examples:
    >>> print(four_fifths(sex=["f", "m"]))
    min(coverage on sex="f", coverage on sex="m") / max(coverage on sex="f", coverage on sex="m")
    >= 0.8
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from setpoint._checks import at_least_zero, share
from setpoint.rates import (
    Bound,
    Expression,
    Value,
    coverage,
    error,
    fpr,
    maximum,
    minimum,
    precision,
    tpr,
)

MOST_GROUPS = 1000
"""More groups than this are no groups, but a mistake in a column."""


def each(rate: Expression, /, **groups: Iterable[Value]) -> tuple[Expression, ...]:
    """The rate on every group; with several columns, on every intersection.

    Examples:
        >>> each(fpr, sex=["f", "m"])
        (fpr on sex="f", fpr on sex="m")
    """
    if not isinstance(rate, Expression):
        raise TypeError(f"Groups are compared by a rate, such as tpr; got {rate!r}.")
    columns = {name: _distinct_values(name, values) for name, values in groups.items()}
    if not columns:
        raise TypeError('Name the groups by their column and its values: sex=["f", "m"].')
    count = 1
    for values in columns.values():
        count *= len(values)
    if count > MOST_GROUPS:
        raise ValueError(
            f"{count:,} groups are more than {MOST_GROUPS:,}: name the few that matter."
        )
    cells = product(*columns.values())
    return tuple(rate.on(**dict(zip(columns, cell, strict=True))) for cell in cells)


def largest(rate: Expression, /, **groups: Iterable[Value]) -> Expression:
    """The rate of the group where it is largest: ``minimize=largest(fnr, sex=["f", "m"])``.

    Examples:
        >>> largest(fpr, sex=["f", "m"])
        max(fpr on sex="f", fpr on sex="m")
    """
    return maximum(*each(rate, **groups))


def smallest(rate: Expression, /, **groups: Iterable[Value]) -> Expression:
    """The rate of the group where it is smallest: ``maximize=smallest(tpr, sex=["f", "m"])``.

    Examples:
        >>> smallest(tpr, sex=["f", "m"])
        min(tpr on sex="f", tpr on sex="m")
    """
    return minimum(*each(rate, **groups))


def gap(rate: Expression, /, **groups: Iterable[Value]) -> Expression:
    """How far apart the rates of the groups are: the largest minus the smallest.

    Examples:
        >>> gap(tpr, sex=["f", "m"])
        abs(tpr on sex="f" - tpr on sex="m")
    """
    rates = _several(rate, groups)
    if len(rates) == 2:
        return abs(rates[0] - rates[1])
    return maximum(*rates) - minimum(*rates)


def ratio(rate: Expression, /, **groups: Iterable[Value]) -> Expression:
    """The smallest rate of a group over the largest.

    Examples:
        >>> ratio(tpr, sex=["f", "m"]) >= 0.9
        min(tpr on sex="f", tpr on sex="m") / max(tpr on sex="f", tpr on sex="m") >= 0.9
    """
    rates = _several(rate, groups)
    return minimum(*rates) / maximum(*rates)


def demographic_parity(tolerance: float, /, **groups: Iterable[Value]) -> Bound:
    """Every group is accepted equally often, up to ``tolerance``.

    Examples:
        >>> demographic_parity(0.02, sex=["f", "m"])
        abs(coverage on sex="f" - coverage on sex="m") <= 0.02
    """
    return gap(coverage, **groups) <= _tolerance(tolerance)


def equal_opportunity(tolerance: float, /, **groups: Iterable[Value]) -> Bound:
    """The positives of every group are found equally often, up to ``tolerance``.

    Examples:
        >>> equal_opportunity(0.02, sex=["f", "m"])
        abs(tpr on sex="f" - tpr on sex="m") <= 0.02
    """
    return gap(tpr, **groups) <= _tolerance(tolerance)


def equalized_odds(tolerance: float, /, **groups: Iterable[Value]) -> tuple[Bound, Bound]:
    """Positives are found and negatives are bothered equally often in every group.

    Two bounds. One threshold per group cannot hold both exactly: leave a ``tolerance``, or share
    one threshold and let the weights learn it (``Lagrangian(problem)``).

    Examples:
        >>> positives, negatives = equalized_odds(0.05, sex=["f", "m"])
        >>> negatives
        abs(fpr on sex="f" - fpr on sex="m") <= 0.05
    """
    level = _tolerance(tolerance)
    return gap(tpr, **groups) <= level, gap(fpr, **groups) <= level


def predictive_parity(tolerance: float, /, **groups: Iterable[Value]) -> Bound:
    """Alerts are right equally often in every group, up to ``tolerance``.

    Examples:
        >>> predictive_parity(0.02, sex=["f", "m"])
        abs(precision on sex="f" - precision on sex="m") <= 0.02
    """
    return gap(precision, **groups) <= _tolerance(tolerance)


def bounded_group_loss(
    level: float, loss: Expression = error, /, **groups: Iterable[Value]
) -> Bound:
    """No group's loss (by default its error) is above ``level``.

    Examples:
        >>> bounded_group_loss(0.2, sex=["f", "m"])
        max(error on sex="f", error on sex="m") <= 0.2
    """
    return largest(loss, **groups) <= level


def four_fifths(least: float = 0.8, /, **groups: Iterable[Value]) -> Bound:
    """The 80 % rule: no group is accepted less than 0.8 times as often as another.

    Examples:
        >>> four_fifths(sex=["f", "m"]).level
        0.8
    """
    return ratio(coverage, **groups) >= share(least, "The least ratio")


def _several(rate: Expression, groups: dict[str, Iterable[Value]]) -> tuple[Expression, ...]:
    rates = each(rate, **groups)
    if len(rates) < 2:
        raise ValueError(f"Only one group is named, by `{rates[0]}`; a comparison needs two.")
    return rates


def _tolerance(tolerance: float) -> float:
    level = at_least_zero(tolerance, "The tolerance")
    if level > 1:
        raise ValueError(f"Rates differ by at most 1; got a tolerance of {level:g}.")
    return level


def _distinct_values(column: str, values: Iterable[Value]) -> list[Value]:
    """The values of a column, each once; a string is one value, not a list of letters."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"List the groups of {column}, as in {column}=[{values!r}, ...].")
    listed = list(values)
    if not listed:
        raise ValueError(f"{column} names no group.")
    if len(dict.fromkeys(listed)) < len(listed):
        raise ValueError(f"{column} names a group twice: {listed!r:.60}.")
    return listed
