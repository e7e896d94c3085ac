"""A rate: one count over another, on everyone or on a slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from setpoint.rates.arrays import Array, divide
from setpoint.rates.counts import Count
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
    """

    numerator: Count
    denominator: Count
    where: Where = ()
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
        above, below = (max(map(abs, c.weights)) for c in (self.numerator, self.denominator))
        self._note(above / below)
        named(NAMES.get((self.numerator, self.denominator), ""), self)

    def of(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        table = tables[self.where]
        return divide(self.numerator.of(table), self.denominator.of(table))

    def gradient(self, tables: Tables) -> Gradient:
        """``(d numerator - value * d denominator) / denominator``."""
        top, bottom = self.numerator.slopes, self.denominator.slopes
        below = self.denominator.of(tables[self.where])
        value = self.of(tables) if any(bottom) else 0.0
        slopes = enumerate(zip(top, bottom, strict=True))
        return {(self.where, i): divide(a - value * b, below) for i, (a, b) in slopes if a or b}

    def rates(self) -> Iterator[Rate]:
        """This rate."""
        yield self

    def on(self, /, **where: Value) -> Rate:
        """The rate on the examples where every column has the given value."""
        return named(self._name, replace(self, where=narrow(self.where, where)))

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
        return f"{text} on {describe(self.where)}" if self.where else text


def named(name: str, expression: E) -> E:
    """``expression`` under the name a person would use for it."""
    object.__setattr__(expression, "_name", name)
    return expression
