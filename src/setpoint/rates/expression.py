"""The arithmetic of rates: sums, absolute values, extremes and quotients of rates are expressions.

Nothing is computed until an expression is given tables of counts, one for all examples and one for
each slice that it names. Expressions are frozen and hashable, and have a normal form: two sums with
the same terms are equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from setpoint._checks import is_number, number
from setpoint.rates.counts import Array, Counts, divide, larger, sign, signed_sum, weighted_sum
from setpoint.rates.slices import ClassName, ClassSet, Value, Where, class_names
from setpoint.rates.targets import Bound, Range, Setpoint

if TYPE_CHECKING:
    from setpoint.rates.rate import Rate


Tables = Mapping[Where, Counts]
Gradient = dict[tuple[Where, int], Array]
"""Derivatives by the counts of each slice, in the order TP, FP, FN, TN; zeros are left out.

Of several classes also by the confusion matrix (:data:`setpoint.rates.counts.MATRIX`) and, under
minus ``k``, by the hits among the first ``k``.
"""
_DEEPEST_EXPRESSION = 50
"""How deep expressions may be nested: far beyond any goal, and well within python's stack."""
_DIFFERENCE_ROUNDING = 1e-14
"""The rounding error of a difference of a few rates in double precision, by their scale."""
_STRICT = (
    "Rates compare with <= and >=: write `{} {} {}`. "
    "For the larger or smaller of two rates, write maximum(a, b) or minimum(a, b)."
)
_BOUND_ADVICE = "Write it with + and *, as in 0.5 * fpr + 0.5 * fnr."


class Expression:
    """Anything made of rates: has a value on tables of counts, and the arithmetic of numbers."""

    depth: int
    """How deep expressions are nested in this one; at most :data:`_DEEPEST_EXPRESSION`."""
    scale: float
    """The order of magnitude of its values: what "the same value" is measured against."""
    _name = ""
    _is_factor = False  # whether its text needs no parentheses in a product
    __array_ufunc__ = None  # numpy scalars leave arithmetic and comparison to us
    about_classes: bool = False
    """Whether this node itself, not one inside it, is about several classes."""

    @overload
    def of(self, tables: Tables, /) -> Array: ...

    @overload
    def of(self, *classes: ClassName) -> Expression: ...

    def of(self, *given: Any) -> Any:
        """The value on tables of counts; or, given classes, this expression of these classes.

        ``recall.of("cat")`` is the recall of one class against the rest,
        ``recall.of("cat", "dog")`` that of two classes taken as one.
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

    def of_classes(self, classes: ClassSet) -> Expression:
        """This expression with every rate taken of a set of classes against the rest."""
        return self._rebuilt(tuple(child.of_classes(classes) for child in self.children))

    def _rebuilt(self, children: tuple[Expression, ...]) -> Expression:
        """This expression with other children."""
        raise NotImplementedError

    @property
    def is_about_classes(self) -> bool:
        """Whether it, or anything inside, is about one of several classes."""
        return self.about_classes or any(child.is_about_classes for child in self.children)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The expressions this one is made of."""
        return ()

    def nodes(self) -> Iterator[Expression]:
        """This expression and those inside it; one over all classes is not looked into."""
        yield self
        if not self.about_classes:
            for child in self.children:
                yield from child.nodes()

    def rates(self) -> Iterator[Rate]:
        """Every rate inside, from left to right."""
        for child in self.children:
            yield from child.rates()

    @property
    def direction(self) -> int | None:
        """What accepting more examples does to the value.

        1: raises it, -1: lowers it, 0: nothing, None: it depends on the examples.
        """
        return None

    @property
    def is_share(self) -> bool:
        """Whether the value always lies between 0 and 1."""
        return False

    def _note(self, scale: float) -> None:
        """Store depth and scale as plain attributes, which compilers of the training step read."""
        depth = 1 + max((child.depth for child in self.children), default=0)
        if depth > _DEEPEST_EXPRESSION:
            raise ValueError(
                f"Expressions can be nested {_DEEPEST_EXPRESSION} deep, and no deeper."
            )
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
        return _add(self, other) if is_operand(other) else NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: float) -> Expression:
        if isinstance(factor, Expression):
            raise TypeError(f"Rates scale by numbers; cannot multiply {self} by {factor}.")
        return _scaled(self, operator.mul, factor) if is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Operand) -> Expression:
        return self + -1 * other if is_operand(other) else NotImplemented

    def __rsub__(self, other: Operand) -> Expression:
        return -self + other

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            return Quotient(self, other)
        if not is_number(other):
            return NotImplemented
        if other == 0:
            raise ZeroDivisionError(f"Cannot divide {self} by zero.")
        return _scaled(self, operator.truediv, other)

    def __rtruediv__(self, other: float) -> Expression:
        return Quotient(_lifted(other), self) if is_number(other) else NotImplemented

    def __abs__(self) -> Expression:
        return Fold("abs", (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self}` is a rate, not a number: it has a truth value only once it is measured."
        )

    def __repr__(self) -> str:
        return str(self)


Operand = Expression | float
_Terms = tuple[tuple[float, Expression], ...]


@dataclass(frozen=True, repr=False)
class Combination(Expression):
    """A weighted sum of rates (and of folds and quotients) plus a constant.

    Arithmetic makes them, ``0.5 * fpr + 0.5 * fnr``, and leaves out what is zero.
    """

    terms: _Terms
    constant: float = 0.0

    def __post_init__(self) -> None:
        terms = tuple((number(weight, "A weight"), term) for weight, term in self.terms)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "constant", number(self.constant, "A constant") + 0.0)
        expressions = [term for _, term in terms]
        if any(isinstance(e, Combination) or not isinstance(e, Expression) for e in expressions):
            raise TypeError(
                f"A sum has rates, folds and quotients for terms; got {terms!r}. {_BOUND_ADVICE}"
            )
        lone = len(terms) == 1 and terms[0][0] == 1 and not self.constant
        if lone or not all(weight for weight, _ in terms) or len(set(expressions)) < len(terms):
            raise ValueError(
                f"A sum has distinct terms, none of them zero; got {terms!r}. {_BOUND_ADVICE}"
            )
        # the scale is that of the largest term; of a lone constant, its size
        self._note(max((abs(a) * term.scale for a, term in terms), default=abs(self.constant)))

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms without their weights."""
        return tuple(term for _, term in self.terms)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``."""
        total: Array = self.constant
        for weight, term in self.terms:
            total = total + weight * term.value(tables)
        return total

    def gradient(self, tables: Tables) -> Gradient:
        """The sum of the terms' gradients."""
        return weighted_sum(*((weight, term.gradient(tables)) for weight, term in self.terms))

    def _rebuilt(self, children: tuple[Expression, ...]) -> Expression:
        weights = (weight for weight, _ in self.terms)
        return _combine(tuple(zip(weights, children, strict=True)), self.constant)

    @property
    def direction(self) -> int | None:
        """Monotone if every term pulls the same way."""
        signs = [(1 if a > 0 else -1, term.direction) for a, term in self.terms]
        return common_sign(tuple(None if d is None else a * d for a, d in signs))

    @property
    def is_share(self) -> bool:
        """Whether this is an average of shares."""
        if self.constant or not self.terms or sum(weight for weight, _ in self.terms) > 1:
            return False
        return all(weight > 0 and term.is_share for weight, term in self.terms)

    def __str__(self) -> str:
        parts = [(a, as_factor(term)) for a, term in self.terms]
        leads = bool(parts) and parts[0][0] < 0 < self.constant  # "1 - fpr", not "-fpr + 1"
        parts.insert(0 if leads else len(parts), (self.constant, ""))
        return self._name or signed_sum(parts)


@dataclass(frozen=True, repr=False)
class Fold(Expression):
    """The absolute value of one expression, or the maximum or minimum of several."""

    kind: str
    parts: tuple[Expression, ...]
    _is_factor = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        _check_expressions(self.parts)
        if self.kind not in ("abs", "max", "min"):
            raise ValueError(f"A fold is 'abs', 'max' or 'min'; got {self.kind!r}.")
        if (self.kind == "abs") != (len(self.parts) == 1):
            raise ValueError(
                "abs takes one expression, max and min take several; "
                f"got {self.kind} of {len(self.parts)}."
            )
        self._note(max(part.scale for part in self.parts))

    @property
    def children(self) -> tuple[Expression, ...]:
        """The parts."""
        return self.parts

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``."""
        values = [part.value(tables) for part in self.parts]
        if self.kind == "abs":
            return abs(values[0])
        turn = 1 if self.kind == "max" else -1
        result = turn * values[0]
        for value in values[1:]:
            result = larger(result, turn * value)
        return turn * result

    def gradient(self, tables: Tables) -> Gradient:
        """The gradient of the part that is the extreme; equal parts share it."""
        values = [part.value(tables) for part in self.parts]
        slopes = [part.gradient(tables) for part in self.parts]
        if self.kind == "abs":
            return weighted_sum((sign(values[0]), slopes[0]))
        turn = 1 if self.kind == "max" else -1
        result, slope = turn * values[0], slopes[0]
        for value, other in zip(values[1:], slopes[1:], strict=True):
            lead = sign(result - turn * value) / 2
            slope = weighted_sum((0.5 + lead, slope), (0.5 - lead, other))
            result = larger(result, turn * value)
        return slope

    def _rebuilt(self, children: tuple[Expression, ...]) -> Fold:
        return Fold(self.kind, children)

    @property
    def direction(self) -> int | None:
        """A largest or smallest value is monotone if all its parts are, in the same direction."""
        if self.kind == "abs":
            return None
        return common_sign(tuple(part.direction for part in self.parts))

    @property
    def is_share(self) -> bool:
        """Whether every part is."""
        return all(part.is_share for part in self.parts)

    def __str__(self) -> str:
        return self._name or f"{self.kind}({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, repr=False)
class Quotient(Expression):
    """One expression over another: lift, or the 80 % rule between two groups."""

    top: Expression
    bottom: Expression
    _noise = (0.0, 0.0)  # sizes below which the top and the bottom are rounding errors

    def __post_init__(self) -> None:
        _check_expressions(self.children)
        self._note(self.top.scale / (self.bottom.scale or 1.0))
        noise = tuple(_DIFFERENCE_ROUNDING * part.scale * _cancels(part) for part in self.children)
        object.__setattr__(self, "_noise", noise)

    @property
    def children(self) -> tuple[Expression, ...]:
        """What is above and what is below."""
        return (self.top, self.bottom)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        return divide(*self._parts(tables))

    def _parts(self, tables: Tables) -> tuple[Array, Array]:
        """What is above and below; zero if it is no more than the rounding of a difference."""
        top, bottom = (part.value(tables) for part in self.children)
        above, below = self._noise
        if above:
            top = top * (abs(top) > above)
        if below:
            bottom = bottom * (abs(bottom) > below) + 0.0  # 0, not -0: the sign is the top's
        return top, bottom

    def gradient(self, tables: Tables) -> Gradient:
        """The quotient rule."""
        _, below = self._parts(tables)
        first, second = divide(1.0, below), divide(-self.value(tables), below)
        return weighted_sum(
            (first, self.top.gradient(tables)), (second, self.bottom.gradient(tables))
        )

    def _rebuilt(self, children: tuple[Expression, ...]) -> Quotient:
        return Quotient(*children)

    def __str__(self) -> str:
        return self._name or f"{as_factor(self.top)} / {as_factor(self.bottom)}"


def maximum(*expressions: Operand) -> Expression:
    """The largest of several expressions: ``maximum(fpr, fnr)``.

    Examples:
        >>> from setpoint import Problem, fnr, fpr
        >>> print(Problem(minimize=maximum(fpr, fnr)))
        minimize max(fpr, fnr)
    """
    return _fold("max", expressions)


def minimum(*expressions: Operand) -> Expression:
    """The smallest of several expressions.

    Examples:
        >>> from setpoint import Problem, recall, tnr
        >>> print(Problem(maximize=minimum(recall, tnr)))
        maximize min(recall, tnr)
    """
    return _fold("min", expressions)


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


def _add(left: Expression, right: Operand) -> Expression:
    """The sum of two expressions."""
    (terms, constant), (more, other) = _linear(left), _linear(_lifted(right))
    return _combine(terms + more, constant + other)


def _scaled(
    expression: Expression, operation: Callable[[float, float], float], by: float
) -> Expression:
    """The expression with ``operation(weight, by)`` for every weight."""
    terms, constant = _linear(expression)
    scaled_terms = tuple((operation(a, float(by)), term) for a, term in terms)
    return _combine(scaled_terms, operation(constant, float(by)))


def _lifted(value: Operand) -> Expression:
    """Numbers as expressions, too."""
    return value if isinstance(value, Expression) else Combination((), value)


def _linear(expression: Expression) -> tuple[_Terms, float]:
    if isinstance(expression, Combination):
        return expression.terms, expression.constant
    return ((1.0, expression),), 0.0


def _combine(terms: _Terms, constant: float) -> Expression:
    """The sum in normal form: equal terms merged, zeros dropped, a lone term left as it is."""
    merged: dict[Expression, float] = {}
    for weight, term in terms:
        merged[term] = merged.get(term, 0.0) + weight
    kept = tuple((weight, term) for term, weight in merged.items() if weight)
    if constant == 0 and len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return Combination(kept, constant)


def _fold(kind: str, expressions: tuple[Operand, ...]) -> Expression:
    for e in expressions:
        if not is_operand(e):
            raise TypeError(f"{kind}imum takes rates, combinations and numbers; got {e!r}.")
    if not expressions:
        raise TypeError(f"{kind}imum needs at least one expression.")
    parts = tuple(_lifted(e) for e in expressions)
    return parts[0] if len(parts) == 1 else Fold(kind, parts)


def _cancels(expression: Expression) -> bool:
    """Whether there is a difference inside, which can be zero but for rounding errors."""
    signs = (
        {weight > 0 for weight, _ in node.terms} | ({node.constant > 0} if node.constant else set())
        for node in expression.nodes()
        if isinstance(node, Combination)
    )
    return any(len(found) > 1 for found in signs)


def _check_expressions(values: Iterable[object]) -> None:
    for value in values:
        if not isinstance(value, Expression):
            raise TypeError(f"Expected a rate or an expression made of rates; got {value!r}.")
