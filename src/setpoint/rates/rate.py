"""A rate is one count over another, on all examples or on a slice; and the rates people use.

To add a rate, define it beside the others below.

Two measures of the agreement of decisions with the truth beyond chance are functions of rates,
Matthews' correlation and Cohen's kappa. With the shares ``a`` of the positives and ``b`` of the
negatives that are accepted, the prior ``p`` and the accepted share ``q = p a + (1 - p) b`` of
everyone,

    mcc   = sqrt(p (1 - p)) (a - b) / sqrt(q (1 - q)),
    kappa = 2 p (1 - p) (a - b) / (q (1 - p) + (1 - q) p).

Both rise with ``a`` and fall with ``b``. In the odds ``o = p / (1 - p)`` they are ``a - b`` over

    sqrt(a (1 - a) o + b (1 - b) / o + a (1 - b) + b (1 - a)),
    ((1 - a) o + b / o + 1 + a - b) / 2,

each with a single minimum, so their size is least at an end of any range of priors, and greatest
at ``o^2 = b (1 - b) / (a (1 - a))`` and ``o^2 = b / (1 - a)``.
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
    weighted_sum,
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


MEASURES = ("mcc", "kappa")


@dataclass(frozen=True, repr=False)
class Agreement(Expression):
    """Matthews' correlation coefficient (the phi coefficient) or Cohen's kappa.

    Args:
        measure: ``"mcc"`` or ``"kappa"``.
        hits: The true positive rate, of all examples or of a slice.
        alarms: The false positive rate of the same examples.
        prior: Their share of positives.
    """

    measure: str
    hits: Rate
    alarms: Rate
    prior: Rate
    _is_factor = True

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"Agreement is measured by mcc or kappa; got {self.measure!r}.")
        self._note(1.0)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The three shares it is a function of."""
        return self.hits, self.alarms, self.prior

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0 where everyone or nobody is accepted, NaN without a class."""
        return self.at_shares(*(child.value(tables) for child in self.children))

    def at_shares(self, hits: Array, alarms: Array, prior: Array) -> Array:
        """The value at shares of the positives and of the negatives, and a prior."""
        top, bottom, power, _ = self._parts(hits, alarms, prior)
        return divide(top * (hits - alarms), (bottom + (bottom == 0)) ** power)

    def gradient(self, tables: Tables) -> Gradient:
        """By the two shares; the prior does not move."""
        a, b, p = (child.value(tables) for child in self.children)
        top, bottom, power, slope = self._parts(a, b, p)
        bottom = bottom + (bottom == 0)
        level, bend = divide(top, bottom**power), divide(power * (a - b) * slope, bottom)
        by_hits, by_alarms = level * (1 - bend * p), level * (-1 - bend * (1 - p))
        return weighted_sum(
            (by_hits, self.hits.gradient(tables)), (by_alarms, self.alarms.gradient(tables))
        )

    def _parts(self, a: Array, b: Array, p: Array) -> tuple[Array, Array, float, Array]:
        """``top (a - b) / bottom^power``, and the slope of the bottom by the accepted share."""
        q, chance = p * a + (1 - p) * b, p * (1 - p)
        if self.measure == "mcc":
            return chance**0.5, q * (1 - q), 0.5, 1 - 2 * q
        return 2 * chance, q * (1 - p) + (1 - q) * p, 1.0, 1 - 2 * p

    def strongest_prior(self, hits: Array, alarms: Array) -> Array:
        """The prior at which the value is farthest from zero."""
        top, bottom = alarms, 1 - hits
        if self.measure == "mcc":
            top, bottom = alarms * (1 - alarms), hits * (1 - hits)
        return divide(top**0.5, top**0.5 + bottom**0.5)

    def on(self, /, **where: Value) -> Agreement:
        """The same on the examples where every column has the given value."""
        return Agreement(self.measure, *(rate.on(**where) for rate in self.rates()))

    def of_classes(self, classes: ClassSet) -> Agreement:
        """The same of a set of classes against the rest."""
        return Agreement(self.measure, *(rate.of_classes(classes) for rate in self.rates()))

    def __str__(self) -> str:
        return f"{self.measure}{self.hits.whom}"


mcc = CATALOGUE["mcc"] = Agreement("mcc", tpr, fpr, prevalence)
kappa = CATALOGUE["kappa"] = Agreement("kappa", tpr, fpr, prevalence)
