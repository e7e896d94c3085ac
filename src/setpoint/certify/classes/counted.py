"""The shares that a bound on classes is about, and the counts behind them.

At fixed shifts whether an example counts in a rate of a class is one binomial trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.certify.measured import is_plain_share
from setpoint.certify.tails import allowed, at_least, at_most, lower, upper
from setpoint.problems import Problem
from setpoint.problems.classes import read_data
from setpoint.problems.classes.matrix import hard_tables
from setpoint.rates import Across, Bound, numeral
from setpoint.rates.slices import quote


@dataclass(frozen=True)
class Counted:
    """One share that a bound limits: ``count`` of ``total``."""

    bound: Bound
    whose: str
    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.bound.expression}{self.whose} {self.bound.sense} {numeral(self.bound.level)}"

    @property
    def measured(self) -> float | None:
        """The share itself; None if there is no example of it."""
        return self.count / self.total if self.total else None

    def proved(self, tail: float) -> float:
        """What the share is at most, or at least, but for a chance of ``tail``."""
        return float((upper if self.bound.sense == "<=" else lower)(self.count, self.total, tail))

    def holds(self, value: float) -> bool:
        """Whether a share of ``value`` is within the bound, and there are examples of it."""
        level = self.bound.level
        return self.total > 0 and (value <= level if self.bound.sense == "<=" else value >= level)

    def provable(self, tail: float) -> float | None:
        """The worst share of so many examples that proves the bound; None if not even the best."""
        at_most = self.bound.sense == "<="
        wrong = allowed(self.total, self.bound.level if at_most else 1 - self.bound.level, tail)
        if wrong < 0 or not self.total:
            return None
        return (wrong if at_most else self.total - wrong) / self.total

    def chance(self) -> float:
        """How likely counts are as bad as these if the bound is true."""
        if not self.total:
            return 1.0
        side = at_least if self.bound.sense == "<=" else at_most
        return float(side(self.count, self.total, self.bound.level))


def counted(
    problem: Problem,
    scores: Any,
    labels: Any,
    shifts: Any,
    *,
    classes: Sequence[Any],
    groups: Any = None,
) -> dict[Bound, list[Counted]]:
    """For every bound that can be proved, the shares it limits, on these examples."""
    data = read_data(problem, scores, labels, None, groups, classes)
    tables = hard_tables(data, data.scores - np.asarray(shifts, np.float64), frozenset())
    return {
        target: list(_counted(target, tables, data.names))
        for target in problem.subject_to
        if isinstance(target, Bound) and is_provable(target)
    }


def is_provable(bound: Bound) -> bool:
    """Whether a bound is one on a share of examples, or on that of every class."""
    expression = bound.expression
    if isinstance(expression, Across):
        worst = {"lowest": ">=", "highest": "<="}.get(expression.kind)
        return bound.sense == worst and is_plain_share(expression.inner)
    return is_plain_share(expression)


def _counted(bound: Bound, tables: Any, names: tuple[Any, ...]) -> Iterator[Counted]:
    expression = bound.expression
    for rate in expression.rates():
        table, whose = tables[rate.where], [""]
        if isinstance(expression, Across):
            table, whose = table.classes.each(), [f" of {quote(str(name))}" for name in names]
        elif rate.classes:
            table = table.classes.against_rest(rate.classes)
        counts, sizes = (np.atleast_1d(x.of(table)) for x in (rate.numerator, rate.denominator))
        for text, count, n in zip(whose, counts, sizes, strict=True):
            yield Counted(Bound(rate, bound.sense, bound.level), text, int(count), int(n))
