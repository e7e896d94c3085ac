"""A rate: one count over another, on everyone or on a slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from setpoint.rates.arrays import Array, divide
from setpoint.rates.classes import MATRIX, Classes, class_names, confusion, describe_classes
from setpoint.rates.counts import Count, Counts
from setpoint.rates.expression import Expression, Gradient, Tables, common_sign
from setpoint.rates.slices import Value, Where, describe, narrow, ordered

E = TypeVar("E", bound=Expression)
NAMES: dict[tuple[Count, Count], str] = {}
"""What people call a numerator over a denominator; the catalogue fills it in."""


@dataclass(frozen=True, repr=False)
class Rate(Expression):
    """One count over another, on everyone or on a slice.

    >>> from setpoint.rates import FP, TN
    >>> fpr = Rate(FP, FP + TN)
    >>> fpr, fpr <= 0.01, fpr.on(group="a")
    (fpr, fpr <= 0.01, fpr on group="a")
    >>> fpr.of("cat")
    fpr of "cat"
    """

    numerator: Count
    denominator: Count
    where: Where = ()
    classes: Classes = ()
    _is_factor = True

    def __post_init__(self) -> None:
        for count in (self.numerator, self.denominator):
            if not isinstance(count, Count):
                raise TypeError(
                    f"A rate is one count over another, like Rate(FP, FP + TN); got {count!r}."
                )
        if not any(self.numerator.weights[:4]):
            raise ValueError("The numerator of a rate must count something (TP, FP, FN or TN).")
        if not any(self.denominator.weights):
            raise ValueError("The denominator of a rate is zero.")
        object.__setattr__(self, "where", ordered(self.where))
        if self.classes:
            object.__setattr__(self, "classes", class_names(self.classes))
        above, below = (max(map(abs, c.weights)) for c in (self.numerator, self.denominator))
        self._note(above / below)
        named(NAMES.get((self.numerator, self.denominator), ""), self)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        table = self._table(tables)
        return divide(self.numerator.of(table), self.denominator.of(table))

    def gradient(self, tables: Tables) -> Gradient:
        """``(d numerator - value * d denominator) / denominator``."""
        top, bottom = self.numerator.slopes, self.denominator.slopes
        below = self.denominator.of(self._table(tables))
        value = self.value(tables) if any(bottom) else 0.0
        slopes = enumerate(zip(top, bottom, strict=True))
        found = {i: divide(a - value * b, below) for i, (a, b) in slopes if a or b}
        if not self.classes:
            return {(self.where, i): slope for i, slope in found.items()}
        matrix = confusion(tables[self.where], self)
        entries = matrix.entries(self.classes, tuple(found.get(i, 0.0) for i in range(4)))
        return {(self.where, MATRIX): entries}

    def _table(self, tables: Tables) -> Counts:
        table = tables[self.where]
        return confusion(table, self).against_rest(self.classes) if self.classes else table

    def rates(self) -> Iterator[Rate]:
        """This rate."""
        yield self

    def on(self, /, **where: Value) -> Rate:
        """The rate on the examples where every column has the given value."""
        return named(self._name, replace(self, where=narrow(self.where, where)))

    def of_classes(self, classes: Classes) -> Rate:
        """The rate of a set of classes against the rest."""
        if self.classes and self.classes != classes:
            raise ValueError(
                f"`{self}` is of {describe_classes(self.classes)} already; "
                f"it cannot be of {describe_classes(classes)}, too."
            )
        return named(self._name, replace(self, classes=classes))

    @property
    def about_classes(self) -> bool:  # type: ignore[override]
        """Whether it is the rate of one of several classes."""
        return bool(self.classes)

    @property
    def is_steady(self) -> bool:
        """Whether the denominator stays as the threshold moves: it counts whole classes."""
        bottom = self.denominator
        return bottom.tp == bottom.fn and bottom.fp == bottom.tn

    @property
    def direction(self) -> int | None:
        """See :attr:`Expression.direction`: a rate is monotone if its denominator is fixed."""
        top, below = self.numerator, common_sign(self.denominator.weights)
        if not self.is_steady:
            return None
        above = common_sign((top.tp - top.fn, top.fp - top.tn))
        return above if not above else None if below is None else above * below

    @property
    def is_share(self) -> bool:
        """Whether the numerator is a part of the denominator."""
        pairs = zip(self.numerator.weights, self.denominator.weights, strict=True)
        return all(0 <= part <= whole for part, whole in pairs)

    def __str__(self) -> str:
        text = self._name or f"({self.numerator}) / ({self.denominator})"
        text += f" of {describe_classes(self.classes)}" if self.classes else ""
        return f"{text} on {describe(self.where)}" if self.where else text


def named(name: str, expression: E) -> E:
    """``expression`` under the name a person would use for it."""
    object.__setattr__(expression, "_name", name)
    return expression
