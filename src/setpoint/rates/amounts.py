"""Costs that differ by row: a miss costs what the row is worth.

``cost(miss=1, false_alarm=5, amounts="amount")`` is the mean over all rows of the amounts of the
positives that were rejected, plus 5 for every negative that was accepted. The column of amounts is
a slice of the data in which a positive counts by its amount instead of once; negatives count once.
So whatever counts slices, hard or soft, counts money, and the column is passed as groups are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from setpoint.rates.counts import EVERYONE, FN, FP, ONE, Array, divide
from setpoint.rates.expression import Expression, Gradient, Tables
from setpoint.rates.rate import Rate
from setpoint.rates.slices import (
    ClassSet,
    Value,
    Where,
    column_name,
    narrow,
    numeral,
    ordered,
    whom,
)

BY_AMOUNT = "\N{CURRENCY SIGN}"
"""The value of a slice in which positives count by what a column says."""


@dataclass(frozen=True, repr=False)
class AmountCost(Expression):
    """The mean cost of a row, where misses cost ``miss`` times the row's amount.

    Args:
        miss: What a miss costs, in units of its amount.
        false_alarm: What a negative that is accepted costs.
        column: The column of amounts.
        where: The slice it is taken on; empty for all examples.
    """

    miss: float
    false_alarm: float
    column: str
    where: Where = ()
    _is_factor = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", ordered(self.where))
        self._note(max(self.miss, self.false_alarm))

    @property
    def priced(self) -> Where:
        """The slice in which positives count by their amounts."""
        return ordered((*self.where, (self.column, BY_AMOUNT)))

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        paid = tables[self.priced]
        return divide(self.miss * paid.fn + self.false_alarm * paid.fp, self._rows(tables))

    def gradient(self, tables: Tables) -> Gradient:
        """By the misses and the false alarms."""
        rows = self._rows(tables)
        return {
            (self.priced, 1): divide(self.false_alarm, rows),
            (self.priced, 2): divide(self.miss, rows),
        }

    def _rows(self, tables: Tables) -> Array:
        plain = tables[self.where]
        return plain.positives + plain.negatives

    def rates(self) -> Iterator[Rate]:
        """What is counted: on the slice, and by amounts."""
        yield Rate(FP + FN, EVERYONE, self.where)
        yield Rate(self.miss * FN + self.false_alarm * FP, ONE, self.priced)

    def on(self, /, **where: Value) -> AmountCost:
        """The same on the examples where every column has the given value."""
        return replace(self, where=narrow(self.where, where))

    def of_classes(self, classes: ClassSet) -> Expression:
        """Refused: amounts are for two classes."""
        raise ValueError(f"`{self}` is about two classes; for several give cost a matrix.")

    def __str__(self) -> str:
        costs = f"miss={numeral(self.miss)}, false_alarm={numeral(self.false_alarm)}"
        return f"cost({costs}, amounts={column_name(self.column)}){whom(self.where)}"


def is_cost(expression: Expression) -> bool:
    """Whether it is a sum of weighted cells over all examples: ``cost(miss=, false_alarm=)``."""
    if not isinstance(expression, Rate) or expression.classes:
        return False
    above, below = expression.numerator.weights, expression.denominator.weights
    priced = str(expression).startswith("cost(") or not expression.is_share
    return below == EVERYONE.weights and priced and min(above) >= 0


def by_amounts(expression: Expression, column: str) -> Expression:
    """The same with every ``cost(miss=, false_alarm=)`` counted by a column of amounts."""
    if isinstance(expression, Rate) and is_cost(expression):
        tp, fp, fn, tn, _ = expression.numerator.weights
        if tp or tn:
            raise ValueError(f"amounts= go with the costs of misses and false alarms: {expression}")
        return AmountCost(fn, fp, column, expression.where)
    if not expression.children:
        return expression
    return expression._rebuilt(tuple(by_amounts(child, column) for child in expression.children))
