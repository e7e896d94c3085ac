"""Rates and what arithmetic makes of them.

Everything a person can ask for is built here: a :class:`Rate` is one count over another, rates add
and scale to a :class:`Combination`, and comparing gives a :class:`Bound`. Nothing is computed until
an expression is handed tables of counts, one for the whole data and one for each slice it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from setpoint._checks import is_number, number
from setpoint.rates.counts import Array, Count, Counts, numeral, signed_sum
from setpoint.rates.targets import Bound, Range, Setpoint

Value = str | int | float | bool
Where = tuple[tuple[str, Value], ...]
"""A slice of the data: pairs of column and value, all of which must match. Empty: everyone."""
Tables = Mapping[Where, Counts]
Gradient = dict[tuple[Where, int], Array]
"""Derivatives by the counts of each slice, in the order TP, FP, FN, TN; zeros are left out."""


class Expression:
    """Anything made of rates: has a value on tables of counts, and the arithmetic of numbers."""

    _name: str = ""

    def of(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        raise NotImplementedError

    def gradient(self, tables: Tables) -> Gradient:
        """How the value changes with each count, while the class totals stay."""
        raise NotImplementedError

    def rates(self) -> Iterator[Rate]:
        """Every rate inside, from left to right."""
        raise NotImplementedError

    def on(self, **where: Value) -> Expression:
        """The same expression on the examples where every column has the given value."""
        raise NotImplementedError

    @property
    def direction(self) -> int | None:
        """What accepting more examples does: 1 raises, -1 lowers, 0 nothing, None: it depends."""
        return None

    @property
    def is_share(self) -> bool:
        """Whether the value always lies between 0 and 1."""
        return False

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
        if not _is_operand(other):
            return NotImplemented
        left, right = _linear(self), _linear(_lift(other))
        return _combine(left.terms + right.terms, left.constant + right.constant)

    __radd__ = __add__

    def __mul__(self, factor: float) -> Expression:
        if not is_number(factor):
            if isinstance(factor, Expression):
                raise TypeError(f"Rates scale by numbers; cannot multiply {self} by {factor}.")
            return NotImplemented
        linear, by = _linear(self), float(factor)
        return _combine(tuple((by * a, e) for a, e in linear.terms), by * linear.constant)

    __rmul__ = __mul__

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Operand) -> Expression:
        return self + -_lift(other) if _is_operand(other) else NotImplemented

    def __rsub__(self, other: Operand) -> Expression:
        return -self + other

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            return Quotient(self, other)
        if not is_number(other):
            return NotImplemented
        if other == 0:
            raise ZeroDivisionError(f"Cannot divide {self} by zero.")
        linear, by = _linear(self), float(other)
        return _combine(tuple((a / by, e) for a, e in linear.terms), linear.constant / by)

    def __abs__(self) -> Expression:
        return Fold("abs", (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self}` is a rate, not a number: it has a truth value only once it is measured."
        )


_STRICT = (
    "Rates compare with <= and >=: write `{} {} {}`. "
    "For the larger or smaller of two rates, write maximum(a, b) or minimum(a, b)."
)
Operand = Expression | float
E = TypeVar("E", bound=Expression)


@dataclass(frozen=True, slots=True)
class Rate(Expression):
    """One count over another, on everyone or on a slice.

    >>> from setpoint.rates import FP, TN
    >>> fpr = Rate(FP, FP + TN)
    >>> str(fpr), str(fpr <= 0.01)
    ('fpr', 'fpr <= 0.01')
    """

    numerator: Count
    denominator: Count
    where: Where = ()
    _name: str = field(default="", init=False, compare=False, repr=False)

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
        object.__setattr__(self, "_name", _NAMES.get((self.numerator, self.denominator), ""))

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

    def on(self, **where: Value) -> Rate:
        """The rate on the examples where every column has the given value."""
        sliced = replace(self, where=_narrow(self.where, where))
        object.__setattr__(sliced, "_name", self._name)
        return sliced

    @property
    def direction(self) -> int | None:
        """See :attr:`Expression.direction`: a rate is monotone if its denominator is fixed."""
        top, bottom = self.numerator, self.denominator
        if bottom.tp != bottom.fn or bottom.fp != bottom.tn:
            return None
        return _common_sign((top.tp - top.fn, top.fp - top.tn))

    @property
    def is_share(self) -> bool:
        """Whether the numerator is a part of the denominator."""
        pairs = zip(self.numerator.weights, self.denominator.weights, strict=True)
        return all(0 <= part <= whole for part, whole in pairs)

    def __str__(self) -> str:
        text = self._name or f"({self.numerator}) / ({self.denominator})"
        pairs = " & ".join(f"{_column(key)}={_quote(value)}" for key, value in self.where)
        return f"{text} on {pairs}" if pairs else text


@dataclass(frozen=True, slots=True)
class Combination(Expression):
    """A weighted sum of rates (and of folds and quotients) plus a constant."""

    terms: tuple[tuple[float, Expression], ...]
    constant: float = 0.0
    _name: str = field(default="", init=False, compare=False, repr=False)

    def of(self, tables: Tables) -> Array:
        """The value on ``tables``."""
        total: Array = self.constant
        for weight, term in self.terms:
            total = total + weight * term.of(tables)
        return total

    def gradient(self, tables: Tables) -> Gradient:
        """The sum of the terms' gradients."""
        return _add(*((weight, term.gradient(tables)) for weight, term in self.terms))

    def rates(self) -> Iterator[Rate]:
        """Every rate inside."""
        for _, term in self.terms:
            yield from term.rates()

    def on(self, **where: Value) -> Expression:
        """The sum with every rate on the slice."""
        return _combine(tuple((a, term.on(**where)) for a, term in self.terms), self.constant)

    @property
    def direction(self) -> int | None:
        """Monotone if every term pulls the same way."""
        signs = [(a, term.direction) for a, term in self.terms]
        return _common_sign(tuple(None if d is None else a * d for a, d in signs))

    def __str__(self) -> str:
        parts = [(a, _factor(term)) for a, term in self.terms]
        parts.insert(0 if parts and parts[0][0] < 0 < self.constant else len(parts), (self.constant, ""))
        return self._name or signed_sum(parts)


@dataclass(frozen=True, slots=True)
class Fold(Expression):
    """The absolute value of one expression, or the largest or smallest of several."""

    kind: str
    parts: tuple[Expression, ...]
    _name: str = field(default="", init=False, compare=False, repr=False)

    def of(self, tables: Tables) -> Array:
        """The value on ``tables``."""
        values = [part.of(tables) for part in self.parts]
        if self.kind == "abs":
            return abs(values[0])
        sign = 1 if self.kind == "max" else -1
        result = sign * values[0]
        for value in values[1:]:
            result = _larger(result, sign * value)
        return sign * result

    def gradient(self, tables: Tables) -> Gradient:
        """The gradient of the part that counts; equal parts share it."""
        values = [part.of(tables) for part in self.parts]
        slopes = [part.gradient(tables) for part in self.parts]
        if self.kind == "abs":
            return _add((_sign(values[0]), slopes[0]))
        result, slope = values[0], slopes[0]
        for value, other in zip(values[1:], slopes[1:], strict=True):
            towards = _sign(result - value) * (0.5 if self.kind == "max" else -0.5)
            slope = _add((0.5 + towards, slope), (0.5 - towards, other))
            result = _larger(result, value) if self.kind == "max" else -_larger(-result, -value)
        return slope

    def rates(self) -> Iterator[Rate]:
        """Every rate inside."""
        for part in self.parts:
            yield from part.rates()

    def on(self, **where: Value) -> Fold:
        """The fold with every rate on the slice."""
        return Fold(self.kind, tuple(part.on(**where) for part in self.parts))

    @property
    def direction(self) -> int | None:
        """A largest or smallest value is monotone if all its parts are, in the same direction."""
        if self.kind == "abs":
            return None
        return _common_sign(tuple(part.direction for part in self.parts))

    def __str__(self) -> str:
        return self._name or f"{self.kind}({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Quotient(Expression):
    """One expression over another: lift, or the 80 % rule between two groups."""

    top: Expression
    bottom: Expression
    _name: str = field(default="", init=False, compare=False, repr=False)

    def of(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        return divide(self.top.of(tables), self.bottom.of(tables))

    def gradient(self, tables: Tables) -> Gradient:
        """The quotient rule."""
        below = self.bottom.of(tables)
        first, second = divide(1.0, below), divide(-self.of(tables), below)
        return _add((first, self.top.gradient(tables)), (second, self.bottom.gradient(tables)))

    def rates(self) -> Iterator[Rate]:
        """Every rate inside."""
        yield from self.top.rates()
        yield from self.bottom.rates()

    def on(self, **where: Value) -> Quotient:
        """The quotient with every rate on the slice."""
        return Quotient(self.top.on(**where), self.bottom.on(**where))

    def __str__(self) -> str:
        return self._name or f"{_factor(self.top)} / {_factor(self.bottom)}"


_NAMES: dict[tuple[Count, Count], str] = {}


def named(name: str, expression: E) -> E:
    """``expression`` under the name a person would use for it."""
    object.__setattr__(expression, "_name", name)
    if isinstance(expression, Rate):
        _NAMES.setdefault((expression.numerator, expression.denominator), name)
    return expression


def maximum(*expressions: Operand) -> Expression:
    """The largest of several expressions: ``maximum(fpr, fnr)``."""
    return _fold("max", expressions)


def minimum(*expressions: Operand) -> Expression:
    """The smallest of several expressions."""
    return _fold("min", expressions)


def divide(top: Array, bottom: Array) -> Array:
    """``top / bottom`` where 0/0 is NaN, for floats as for arrays."""
    try:
        return top / bottom
    except ZeroDivisionError:
        return float("nan") if top == 0 else float("inf") * top


def _larger(a: Array, b: Array) -> Array:
    """The larger of two, for floats and arrays of any library; NaN stays NaN."""
    return (a + b + abs(a - b)) / 2


def _sign(value: Array) -> Array:
    return (value > 0) * 1.0 - (value < 0) * 1.0


def _add(*terms: tuple[Array, Gradient]) -> Gradient:
    total: Gradient = {}
    for weight, gradient in terms:
        for key, slope in gradient.items():
            total[key] = total[key] + weight * slope if key in total else weight * slope
    return total


def _fold(kind: str, expressions: tuple[Operand, ...]) -> Expression:
    for e in expressions:
        if not _is_operand(e):
            raise TypeError(f"{kind}imum takes rates, combinations and numbers; got {e!r}.")
    if not expressions:
        raise TypeError(f"{kind}imum needs at least one expression.")
    parts = tuple(_lift(e) for e in expressions)
    return parts[0] if len(parts) == 1 else Fold(kind, parts)


def _is_operand(value: object) -> bool:
    return isinstance(value, Expression) or is_number(value)


def _lift(value: Operand) -> Expression:
    return value if isinstance(value, Expression) else Combination((), float(value) + 0.0)


def _linear(expression: Expression) -> Combination:
    return expression if isinstance(expression, Combination) else Combination(((1.0, expression),))


def _combine(terms: tuple[tuple[float, Expression], ...], constant: float) -> Expression:
    """The sum in normal form: equal terms merged, zeros dropped, a lone term left as it is."""
    merged: dict[Expression, float] = {}
    for weight, term in terms:
        merged[term] = merged.get(term, 0.0) + weight
    for weight in (*merged.values(), constant):
        number(weight, "A coefficient")
    kept = tuple((weight, term) for term, weight in merged.items() if weight)
    if constant == 0 and len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return Combination(kept, constant + 0.0)


def _compare(left: Expression, sense: str, right: Operand) -> Bound:
    if isinstance(right, Expression):
        left, right = left - right, 0.0
    return Bound(left, sense, right)


def _common_sign(values: tuple[float | None, ...]) -> int | None:
    if any(v is None for v in values):
        return None
    signs = {1 if v > 0 else -1 for v in values if v}  # type: ignore[operator]
    return None if len(signs) > 1 else signs.pop() if signs else 0


def _narrow(where: Where, more: Mapping[str, Value]) -> Where:
    if not more:
        raise TypeError('A slice needs a column and a value: `.on(group="a")`.')
    pairs = dict(where)
    for key, given in more.items():
        value = given.item() if hasattr(given, "item") else given
        if not isinstance(value, str) and not isinstance(value, bool) and not is_number(value):
            raise TypeError(f"A slice is picked by a string or a number; got {key}={given!r}.")
        if key in pairs and pairs[key] != value:
            raise ValueError(f"Already on {key}={_quote(pairs[key])}; nobody is also {value!r}.")
        pairs[key] = value
    return tuple(sorted(pairs.items()))


def _column(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else _quote(name)


def _quote(value: Value) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, (bool, int)) else numeral(value)


def _factor(expression: Expression) -> str:
    """The text of an expression where a single factor is expected."""
    bare = isinstance(expression, (Rate, Fold)) or bool(expression._name)
    return str(expression) if bare else f"({expression})"
