"""Expressions about several classes: means and extremes over them, top-k, costs, areas.

Where there are more than two classes, a rate is that of one class (or of a set of classes) against
the rest: ``recall.of("cat")``. What is in this file looks at all classes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from setpoint._checks import at_least_zero, number, whole
from setpoint.rates.amounts import by_amounts
from setpoint.rates.counts import (
    EVERYONE,
    FN,
    FP,
    MATRIX,
    POSITIVES,
    TP,
    Array,
    Counts,
    OverClasses,
    confusion,
    divide,
)
from setpoint.rates.expression import Expression, Gradient, Tables
from setpoint.rates.rate import Rate, named
from setpoint.rates.slices import (
    ClassSet,
    Value,
    Where,
    describe_classes,
    narrow,
    numeral,
    ordered,
    whom,
)

KINDS = ("macro", "lowest", "highest")


@dataclass(frozen=True, repr=False)
class Across(Expression):
    """The mean, the lowest or the highest value of an expression among the classes.

    ``inner`` is made of rates without classes, which are read as those of each class against the
    rest in turn.
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
        """The expression that every class has a value of."""
        return (self.inner,)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``."""
        found = confusion(next(iter(tables.values())), self)
        return found.gather(cast(OverClasses, self.kind), self.inner.value(self._each(tables)))

    def gradient(self, tables: Tables) -> Gradient:
        """By every entry of the confusion matrix."""
        each = self._each(tables)
        first = confusion(next(iter(tables.values())), self)
        shares = first.shares(cast(OverClasses, self.kind), self.inner.value(each))
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

    def of_classes(self, classes: ClassSet) -> Expression:
        """Refused: it goes through all classes."""
        raise ValueError(f"`{self}` goes through all classes: there is no choice of {classes}.")

    @property
    def is_share(self) -> bool:
        """Whether it is one in every class."""
        return self.inner.is_share

    def __str__(self) -> str:
        return f"{self.kind}({self.inner})"


def macro(rate: Expression) -> Across:
    """The mean of a rate over all classes: ``macro(recall)`` is the balanced accuracy.

    Examples:
        >>> from setpoint import recall
        >>> macro(recall) >= 0.8
        macro(recall) >= 0.8
    """
    return Across("macro", rate)


def lowest(rate: Expression) -> Across:
    """The rate of the class where it is lowest: ``lowest(recall)``, worst-class recall.

    Examples:
        >>> from setpoint import recall
        >>> lowest(recall) >= 0.5
        lowest(recall) >= 0.5
    """
    return Across("lowest", rate)


def highest(rate: Expression) -> Across:
    """The rate of the class where it is highest: ``highest(fpr)``.

    Examples:
        >>> from setpoint import fpr
        >>> highest(fpr) <= 0.05
        highest(fpr) <= 0.05
    """
    return Across("highest", rate)


@dataclass(frozen=True, repr=False)
class TopK(Expression):
    """The share of examples whose own class is among the ``k`` highest shifted scores."""

    k: int
    where: Where = ()
    classes: ClassSet = ()
    _is_factor = True
    about_classes = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k", least=1))
        object.__setattr__(self, "where", ordered(self.where))
        self._note(1.0)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        table = confusion(tables[self.where], self)
        chosen = table.chosen(self.classes)
        return divide((chosen * table.hits(self.k).T).sum(-1).T, (chosen * table.truth()).sum())

    def gradient(self, tables: Tables) -> Gradient:
        """By the hits of each class; the key is minus ``k``."""
        table = confusion(tables[self.where], self)
        chosen = table.chosen(self.classes)
        return {(self.where, -self.k): divide(chosen, (chosen * table.truth()).sum())}

    def rates(self) -> Iterator[Rate]:
        """A rate on the same slice."""
        yield Rate(TP, POSITIVES, self.where)

    def on(self, /, **where: Value) -> TopK:
        """The same on the examples where every column has the given value."""
        return replace(self, where=narrow(self.where, where))

    def of_classes(self, classes: ClassSet) -> TopK:
        """Of the examples of these classes only."""
        return replace(self, classes=classes)

    @property
    def is_share(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return f"top_k({self.k}){whom(self.where, self.classes)}"


@dataclass(frozen=True, repr=False)
class Cost(Expression):
    """The mean cost of a decision; ``costs`` has a row for each true class."""

    costs: tuple[tuple[float, ...], ...]
    where: Where = ()
    _is_factor = True
    about_classes = True

    def __post_init__(self) -> None:
        rows = tuple(tuple(number(x, "A cost") + 0.0 for x in row) for row in self.costs)
        if len(rows) < 2 or any(len(row) != len(rows) for row in rows):
            sizes = sorted({len(row) for row in rows})
            raise ValueError(
                "A cost matrix has a row for each true class and a column for each predicted one; "
                f"got {len(rows)} rows of {sizes} numbers."
            )
        object.__setattr__(self, "costs", rows)
        object.__setattr__(self, "where", ordered(self.where))
        self._note(max(abs(x) for row in rows for x in row))

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        table = confusion(tables[self.where], self)
        return divide(table.cost(self.costs), table.truth().sum())

    def gradient(self, tables: Tables) -> Gradient:
        """By every entry of the confusion matrix: its cost over the number of examples."""
        table = confusion(tables[self.where], self)
        truth = table.truth()
        costs = (truth * 0)[:, None] + self.costs
        return {(self.where, MATRIX): divide(costs, truth.sum())}

    def rates(self) -> Iterator[Rate]:
        """A rate on the same slice."""
        yield Rate(FP + FN, EVERYONE, self.where)

    def on(self, /, **where: Value) -> Cost:
        """The same on the examples where every column has the given value."""
        return replace(self, where=narrow(self.where, where))

    def of_classes(self, classes: ClassSet) -> Expression:
        """Refused: a cost matrix is about all classes."""
        raise ValueError(
            f"A cost matrix is about all classes: there is none of {describe_classes(classes)}."
        )

    @property
    def is_share(self) -> bool:
        """Whether every cost is."""
        return all(0 <= x <= 1 for row in self.costs for x in row)

    def __str__(self) -> str:
        rows = ", ".join(f"[{', '.join(map(numeral, row))}]" for row in self.costs)
        return f"cost([{rows}]){whom(self.where)}"


def top_k(k: int) -> TopK:
    """The share of examples whose own class is among the ``k`` highest shifted scores."""
    return TopK(k)


def cost(
    costs: Sequence[Sequence[float]] | Any = None,
    *,
    miss: float | None = None,
    false_alarm: float | None = None,
    amounts: str | None = None,
) -> Expression:
    """The mean cost of a decision, per example.

    Args:
        costs: Of several classes, ``costs[true][predicted]``.
        miss: Of two classes: what a positive that is not accepted costs.
        false_alarm: What a negative that is accepted costs.
        amounts: The column (passed as groups are) that says what each row is worth: a miss costs
            ``miss`` times that.

    Raises:
        TypeError: Neither a matrix nor the two costs are given.
        ValueError: A cost is negative, or both are zero.

    Examples:
        >>> cost(miss=500, false_alarm=5)
        cost(miss=500, false_alarm=5)
        >>> cost([[0, 1], [5, 0]])
        cost([[0, 1], [5, 0]])
    """
    if costs is None:
        found = _cost_of_errors(miss, false_alarm)
        return found if amounts is None else by_amounts(found, amounts)
    if miss is not None or false_alarm is not None or amounts is not None:
        raise TypeError("Give a matrix of costs, or miss= and false_alarm=, not both.")
    rows = costs.tolist() if hasattr(costs, "tolist") else costs
    try:
        return Cost(tuple(tuple(row) for row in rows))
    except TypeError:
        raise TypeError(
            f"A cost matrix is rows of numbers, [[0, 1], [5, 0]]; got {costs!r}."
        ) from None


def _cost_of_errors(miss: object, false_alarm: object) -> Rate:
    """The money that misses and false alarms cost, over all examples."""
    if miss is None or false_alarm is None:
        raise TypeError("Name what both errors cost: cost(miss=500, false_alarm=5).")
    a, b = at_least_zero(miss, "miss"), at_least_zero(false_alarm, "false_alarm")
    if a == b == 0:
        raise ValueError("Costs are all zero: give miss= or false_alarm= a price.")
    name = f"cost(miss={numeral(a)}, false_alarm={numeral(b)})"
    return named(name, Rate(a * FN + b * FP, EVERYONE))


AREAS = ("auc_mu", "one_vs_all_auc")


@dataclass(frozen=True, repr=False)
class ClassArea(Expression):
    """How well the scores rank classes: ``auc_mu`` by pairs, ``one_vs_all_auc`` by own score."""

    kind: str
    _is_factor = True
    about_classes = True

    def __post_init__(self) -> None:
        if self.kind not in AREAS:
            raise ValueError(f"Areas of classes are {' and '.join(AREAS)}; got {self.kind!r}.")
        self._note(1.0)

    def value(self, tables: Tables) -> Array:
        """Refused: it is no function of counts."""
        raise TypeError(f"{self.kind} is read off scores, not off decisions: use problem.evaluate.")

    def gradient(self, tables: Tables) -> Gradient:
        """Refused: it is no function of counts."""
        raise TypeError(f"{self.kind} has no gradient by counts: train it with Program(problem).")

    def rates(self) -> Iterator[Rate]:
        """A rate on the same examples."""
        yield Rate(TP, POSITIVES)

    def on(self, /, **where: Value) -> Expression:
        """Refused: it is known for everyone only."""
        raise ValueError(f"{self.kind} is known for everyone only; pass the rows of the slice.")

    def of_classes(self, classes: ClassSet) -> Expression:
        """Refused: it goes through all classes."""
        raise ValueError(f"{self.kind} goes through all classes; for one of them use roc_auc().")

    @property
    def is_share(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return self.kind


auc_mu = ClassArea("auc_mu")
one_vs_all_auc = ClassArea("one_vs_all_auc")
