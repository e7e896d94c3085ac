"""The arithmetic of rates: everything a person can ask for is made with these operators.

Nothing is computed until an expression is handed tables of counts, one for the whole data and one
for each slice it names.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from setpoint._checks import is_number
from setpoint.rates.arrays import Array
from setpoint.rates.classes import Classes, ClassName, class_names
from setpoint.rates.counts import Counts
from setpoint.rates.slices import Value, Where
from setpoint.rates.targets import Bound, Range, Setpoint

if TYPE_CHECKING:
    from setpoint.rates.rate import Rate

Tables = Mapping[Where, Counts]
Gradient = dict[tuple[Where, int], Array]
"""Derivatives by the counts of each slice, in the order TP, FP, FN, TN; zeros are left out.

Of several classes also by the confusion matrix (:data:`setpoint.rates.classes.MATRIX`) and, under
minus ``k``, by the hits among the first ``k``.
"""
DEEPEST = 50
"""How deep expressions may be nested: far beyond any goal, and well within python's stack."""


class Expression:
    """Anything made of rates: has a value on tables of counts, and the arithmetic of numbers."""

    depth: int
    """How deep expressions are nested in this one; at most :data:`DEEPEST`."""
    scale: float
    """The order of magnitude of its values: what "the same value" is measured against."""
    _name = ""
    _is_factor = False  # whether its text needs no parentheses in a product
    __array_ufunc__ = None  # numpy scalars leave arithmetic and comparison to us

    about_classes = False  # whether this very node, not one inside it, is about several classes

    @overload
    def of(self, tables: Tables, /) -> Array: ...

    @overload
    def of(self, *classes: ClassName) -> Expression: ...

    def of(self, *given: Any) -> Any:
        """The value on tables of counts; or, given classes, the same of these against the rest.

        ``recall.of("cat")`` is the recall of a class, ``recall.of("cat", "dog")`` that of two taken
        as one.
        """
        if len(given) == 1 and isinstance(given[0], Mapping):
            return self.value(given[0])
        return self.of_classes(class_names(given))

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        raise NotImplementedError

    def gradient(self, tables: Tables) -> Gradient:
        """How the value changes with each count, while the class totals stay."""
        raise NotImplementedError

    def on(self, /, **where: Value) -> Expression:
        """The same expression on the examples where every column has the given value."""
        return self._rebuilt(tuple(child.on(**where) for child in self.children))

    def of_classes(self, classes: Classes) -> Expression:
        """The same expression with every rate that of a set of classes against the rest."""
        return self._rebuilt(tuple(child.of_classes(classes) for child in self.children))

    def _rebuilt(self, children: tuple[Expression, ...]) -> Expression:
        """The same made of other children."""
        raise NotImplementedError

    @property
    def is_about_classes(self) -> bool:
        """Whether it, or anything inside, is about one of several classes."""
        return self.about_classes or any(child.is_about_classes for child in self.children)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The expressions this one is made of."""
        return ()

    def rates(self) -> Iterator[Rate]:
        """Every rate inside, from left to right."""
        for child in self.children:
            yield from child.rates()

    @property
    def direction(self) -> int | None:
        """What accepting more examples does: 1 raises, -1 lowers, 0 nothing, None: it depends."""
        return None

    @property
    def is_share(self) -> bool:
        """Whether the value always lies between 0 and 1."""
        return False

    def _note(self, scale: float) -> None:
        """Keep what training asks for at every step, as plain attributes: compilers read them."""
        depth = 1 + max((child.depth for child in self.children), default=0)
        if depth > DEEPEST:
            raise ValueError(f"Expressions can be nested {DEEPEST} deep, and no deeper.")
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "scale", scale)

    def at(self, level: float) -> Setpoint:
        """Hold this expression at ``level`` exactly: the attainable value nearest to it."""
        return Setpoint(self, level)

    def over(self, low: float, high: float) -> Range:
        """Sweep this rate over a range: an area under a curve."""
        return Range(self, low, high)

    def __le__(self, other: Operand) -> Bound:
        return _compare(self, "<=", other)

    def __ge__(self, other: Operand) -> Bound:
        return _compare(self, ">=", other)

    def __lt__(self, other: object) -> Bound:
        raise TypeError(_STRICT.format(self, "<=", other))

    def __gt__(self, other: object) -> Bound:
        raise TypeError(_STRICT.format(self, ">=", other))

    def __add__(self, other: Operand) -> Expression:
        from setpoint.rates.combination import add

        return add(self, other) if is_operand(other) else NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: float) -> Expression:
        from setpoint.rates.combination import scaled

        if isinstance(factor, Expression):
            raise TypeError(f"Rates scale by numbers; cannot multiply {self} by {factor}.")
        return scaled(self, operator.mul, factor) if is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Operand) -> Expression:
        return self + -1 * other if is_operand(other) else NotImplemented

    def __rsub__(self, other: Operand) -> Expression:
        return -self + other

    def __truediv__(self, other: Operand) -> Expression:
        from setpoint.rates.combination import scaled
        from setpoint.rates.folds import Quotient

        if isinstance(other, Expression):
            return Quotient(self, other)
        if not is_number(other):
            return NotImplemented
        if other == 0:
            raise ZeroDivisionError(f"Cannot divide {self} by zero.")
        return scaled(self, operator.truediv, other)

    def __rtruediv__(self, other: float) -> Expression:
        from setpoint.rates.combination import lifted
        from setpoint.rates.folds import Quotient

        return Quotient(lifted(other), self) if is_number(other) else NotImplemented

    def __abs__(self) -> Expression:
        from setpoint.rates.folds import Fold

        return Fold("abs", (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self}` is a rate, not a number: it has a truth value only once it is measured."
        )

    def __repr__(self) -> str:
        return str(self)


_STRICT = (
    "Rates compare with <= and >=: write `{} {} {}`. "
    "For the larger or smaller of two rates, write maximum(a, b) or minimum(a, b)."
)
Operand = Expression | float


def is_operand(value: object) -> bool:
    """Whether ``value`` can stand in a sum: an expression or a number."""
    return isinstance(value, Expression) or is_number(value)


def as_factor(expression: Expression) -> str:
    """The text of an expression where a single factor is expected."""
    bare = expression._is_factor or bool(expression._name)
    return str(expression) if bare else f"({expression})"


def common_sign(values: tuple[float | None, ...]) -> int | None:
    """The sign that all values have, zeros aside; None if they differ or one is unknown."""
    signs = {None if v is None else (v > 0) - (v < 0) for v in values} - {0}
    return None if None in signs or len(signs) > 1 else signs.pop() if signs else 0


def _compare(left: Expression, sense: str, right: Operand) -> Bound:
    if isinstance(right, Expression):
        left, right = left - right, 0.0
    return Bound(left, sense, right)
