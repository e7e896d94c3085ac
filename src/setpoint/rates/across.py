"""One number from the rates of all classes: their mean, the lowest, the highest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from setpoint.rates.arrays import Array
from setpoint.rates.classes import MATRIX, Classes, Kind, confusion
from setpoint.rates.counts import Counts
from setpoint.rates.expression import Expression, Gradient, Tables
from setpoint.rates.slices import Value, Where

KINDS = ("macro", "lowest", "highest")


@dataclass(frozen=True, repr=False)
class Across(Expression):
    """The mean, the lowest or the highest that an expression has among the classes.

    ``inner`` is made of plain rates, which are read as those of one class against the rest.
    """

    kind: str
    inner: Expression
    _is_factor = True
    about_classes = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Across classes there is {', '.join(KINDS)}; got {self.kind!r}.")
        if not isinstance(self.inner, Expression):
            raise TypeError(
                f"{self.kind} takes a rate, as in {self.kind}(recall); got {self.inner!r}."
            )
        if not any(True for _ in self.inner.rates()):
            raise ValueError(f"`{self.inner}` contains no rate: it is the same for every class.")
        if self.inner.is_about_classes:
            raise ValueError(
                f"{self.kind} goes through all classes; `{self.inner}` already names some. "
                f"Write {self.kind}(recall), without .of(...)."
            )
        self._note(self.inner.scale)

    @property
    def children(self) -> tuple[Expression, ...]:
        """What is looked at in every class."""
        return (self.inner,)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``."""
        found = confusion(next(iter(tables.values())), self)
        return found.gather(cast(Kind, self.kind), self.inner.value(self._each(tables)))

    def gradient(self, tables: Tables) -> Gradient:
        """By every entry of the confusion matrix."""
        each = self._each(tables)
        first = confusion(next(iter(tables.values())), self)
        shares = first.shares(cast(Kind, self.kind), self.inner.value(each))
        slopes: dict[Where, list[Array]] = {}
        for (where, i), slope in self.inner.gradient(each).items():
            own = slopes.setdefault(where, [0.0, 0.0, 0.0, 0.0])
            own[i] = own[i] + shares * slope
        return {
            (where, MATRIX): confusion(tables[where], self).entries(None, tuple(own))
            for where, own in slopes.items()
        }

    def _each(self, tables: Tables) -> dict[Where, Counts]:
        asked = {rate.where for rate in self.inner.rates()}
        return {where: confusion(tables[where], self).each() for where in asked}

    def on(self, /, **where: Value) -> Across:
        """The same on the examples where every column has the given value."""
        return Across(self.kind, self.inner.on(**where))

    def of_classes(self, classes: Classes) -> Expression:
        """Refused: it goes through all classes."""
        raise ValueError(f"`{self}` goes through all classes: there is no choice of {classes}.")

    @property
    def is_share(self) -> bool:
        """Whether it is one in every class."""
        return self.inner.is_share

    def __str__(self) -> str:
        return f"{self.kind}({self.inner})"


def macro(rate: Expression) -> Across:
    """The mean of a rate over all classes: ``macro(recall)`` is the balanced accuracy."""
    return Across("macro", rate)


def lowest(rate: Expression) -> Across:
    """The rate of the class where it is lowest: ``lowest(recall)``, worst-class recall."""
    return Across("lowest", rate)


def highest(rate: Expression) -> Across:
    """The rate of the class where it is highest: ``highest(fpr)``."""
    return Across("highest", rate)


def nodes(expression: Expression) -> Iterator[Expression]:
    """The expression and what is inside, but not what stands for every class in turn."""
    yield expression
    for child in () if isinstance(expression, Across) else expression.children:
        yield from nodes(child)
