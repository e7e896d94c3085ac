"""A rate is one count over another, on all examples or on a slice; and the rates people use.

To add a rate, define it beside the others below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from setpoint._checks import number
from setpoint.rates.counts import (
    EVERYONE,
    FN,
    FP,
    MATRIX,
    NEGATIVES,
    ONE,
    POSITIVES,
    TN,
    TP,
    Array,
    Count,
    Counts,
    confusion,
    divide,
)
from setpoint.rates.expression import (
    Combination,
    Expression,
    Gradient,
    Quotient,
    Tables,
    common_sign,
)
from setpoint.rates.slices import (
    ClassSet,
    Value,
    Where,
    class_names,
    describe_classes,
    narrow,
    numeral,
    ordered,
    whom,
)

E = TypeVar("E", bound=Expression)
CATALOGUE: dict[str, Expression] = {}
"""The rates that a sentence can call by name."""
_NAME_OF: dict[tuple[Count, Count], str] = {}
"""The name of a numerator over a denominator; of two names the first."""


def named(name: str, expression: E) -> E:
    """``expression`` under the name a person would use for it."""
    object.__setattr__(expression, "_name", name)
    return expression


@dataclass(frozen=True, repr=False)
class Rate(Expression):
    """One count over another, on all examples or on a slice.

    Args:
        numerator: A weighted sum of TP, FP, FN and TN.
        denominator: The same.
        where: The slice it is taken on; empty for all examples.
        classes: The classes it is of, against the rest; empty with two classes.

    Examples:
        >>> fpr = Rate(FP, FP + TN)
        >>> fpr, fpr <= 0.01, fpr.on(group="a")
        (fpr, fpr <= 0.01, fpr on group="a")
        >>> fpr.of("cat")
        fpr of "cat"
    """

    numerator: Count
    denominator: Count
    where: Where = ()
    classes: ClassSet = ()
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
        object.__setattr__(self, "about_classes", bool(self.classes))
        above, below = (max(map(abs, c.weights)) for c in (self.numerator, self.denominator))
        self._note(above / below)
        named(_NAME_OF.get((self.numerator, self.denominator), ""), self)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        table = self.table(tables)
        return divide(self.numerator.of(table), self.denominator.of(table))

    def gradient(self, tables: Tables) -> Gradient:
        """``(d numerator - value * d denominator) / denominator``."""
        top, bottom = self.numerator.slopes, self.denominator.slopes
        below = self.denominator.of(self.table(tables))
        value = self.value(tables) if any(bottom) else 0.0
        moving = [i for i in range(4) if top[i] or bottom[i]]
        if not self.classes:
            where = self.where
            return {(where, i): divide(top[i] - value * bottom[i], below) for i in moving}
        found = {i: divide(top[i] - value * bottom[i], below) for i in moving}
        matrix = confusion(tables[self.where], self)
        entries = matrix.entries(self.classes, tuple(found.get(i, 0.0) for i in range(4)))
        return {(self.where, MATRIX): entries}

    def table(self, tables: Tables) -> Counts:
        """The counts of its slice, of its classes against the rest."""
        table = tables[self.where]
        return confusion(table, self).against_rest(self.classes) if self.classes else table

    def rates(self) -> Iterator[Rate]:
        """This rate."""
        yield self

    def on(self, /, **where: Value) -> Rate:
        """The rate on the examples where every column has the given value."""
        return named(self._name, replace(self, where=narrow(self.where, where)))

    def of_classes(self, classes: ClassSet) -> Rate:
        """The rate of a set of classes against the rest."""
        if self.classes and self.classes != classes:
            raise ValueError(
                f"`{self}` is of {describe_classes(self.classes)} already; "
                f"it cannot be of {describe_classes(classes)}, too."
            )
        return named(self._name, replace(self, classes=classes))

    @property
    def is_steady(self) -> bool:
        """Whether the denominator counts whole classes, and so does not depend on the threshold."""
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
        return (self._name or f"({self.numerator}) / ({self.denominator})") + self.whom

    @property
    def whom(self) -> str:
        """`` of "cat" on group="a"``: the classes and the slice in words, if there are any."""
        return whom(self.where, self.classes)


def _catalogued(name: str, expression: E) -> E:
    """Put an expression into the catalogue under its name."""
    CATALOGUE[name] = expression
    if isinstance(expression, Rate):
        _NAME_OF.setdefault((expression.numerator, expression.denominator), name)
    return named(name, expression)


fpr = _catalogued("fpr", Rate(FP, NEGATIVES))
tnr = _catalogued("tnr", Rate(TN, NEGATIVES))
fnr = _catalogued("fnr", Rate(FN, POSITIVES))
recall = _catalogued("recall", Rate(TP, POSITIVES))
tpr = _catalogued("tpr", Rate(TP, POSITIVES))
precision = _catalogued("precision", Rate(TP, TP + FP))
npv = _catalogued("npv", Rate(TN, TN + FN))
coverage = _catalogued("coverage", Rate(TP + FP, EVERYONE))
alerts = _catalogued("alerts", Rate(TP + FP, ONE))
prevalence = _catalogued("prevalence", Rate(POSITIVES, EVERYONE))
error = _catalogued("error", Rate(FP + FN, EVERYONE))
accuracy = _catalogued("accuracy", Rate(TP + TN, EVERYONE))
jaccard = _catalogued("jaccard", Rate(TP, TP + FP + FN))
lift = _catalogued("lift", Quotient(precision, prevalence))
balanced_error = _catalogued("balanced_error", Combination(((0.5, fpr), (0.5, fnr))))
sensitivity, specificity = recall, tnr


def f_score(beta: float = 1.0) -> Rate:
    """The F score: recall counts ``beta`` times as much as precision.

    Examples:
        >>> str(f_score(2))
        'f_score(2)'
    """
    if not 0 < number(beta, "beta") < 1e100:  # above, beta squared overflows
        raise ValueError(f"beta must be positive and less than 1e100; got {beta!r}.")
    b = float(beta) ** 2
    rate = Rate((1 + b) * TP, (1 + b) * TP + b * FN + FP)
    return named(f"f_score({numeral(float(beta))})", rate)
