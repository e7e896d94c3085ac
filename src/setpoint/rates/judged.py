"""What decisions between classes cost, and whether the true class is among the first k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from setpoint._checks import number, whole
from setpoint.rates.arrays import Array, divide
from setpoint.rates.classes import MATRIX, Classes, confusion, describe_classes
from setpoint.rates.counts import EVERYONE, FN, FP, POSITIVES, TP
from setpoint.rates.expression import Expression, Gradient, Tables
from setpoint.rates.rate import Rate
from setpoint.rates.slices import Value, Where, describe, narrow, ordered
from setpoint.rates.text import numeral


@dataclass(frozen=True, repr=False)
class TopK(Expression):
    """The share of examples whose own class is among the ``k`` highest shifted scores."""

    k: int
    where: Where = ()
    classes: Classes = ()
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

    def of_classes(self, classes: Classes) -> TopK:
        """Of the examples of these classes only."""
        return replace(self, classes=classes)

    @property
    def is_share(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        text = f"top_k({self.k})"
        text += f" of {describe_classes(self.classes)}" if self.classes else ""
        return f"{text} on {describe(self.where)}" if self.where else text


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

    def of_classes(self, classes: Classes) -> Expression:
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
        text = f"cost([{rows}])"
        return f"{text} on {describe(self.where)}" if self.where else text


def top_k(k: int) -> TopK:
    """The share of examples whose own class is among the ``k`` highest shifted scores."""
    return TopK(k)


def cost(costs: Sequence[Sequence[float]] | Any) -> Cost:
    """The mean cost of a decision, ``costs[true][predicted]``.

    >>> cost([[0, 1], [5, 0]])
    cost([[0, 1], [5, 0]])
    """
    rows = costs.tolist() if hasattr(costs, "tolist") else costs
    try:
        return Cost(tuple(tuple(row) for row in rows))
    except TypeError:
        raise TypeError(
            f"A cost matrix is rows of numbers, [[0, 1], [5, 0]]; got {costs!r}."
        ) from None
