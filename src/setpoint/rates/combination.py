"""Weighted sums of rates, always in normal form, so that equal sums written alike are equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from setpoint._checks import number
from setpoint.rates.arrays import Array, weighted_sum
from setpoint.rates.expression import (
    Expression,
    Gradient,
    Operand,
    Tables,
    as_factor,
    common_sign,
)
from setpoint.rates.text import signed_sum

Terms = tuple[tuple[float, Expression], ...]


@dataclass(frozen=True, repr=False)
class Combination(Expression):
    """A weighted sum of rates (and of folds and quotients) plus a constant.

    Arithmetic makes them, ``0.5 * fpr + 0.5 * fnr``, and leaves out what is zero.
    """

    terms: Terms
    constant: float = 0.0

    def __post_init__(self) -> None:
        terms = tuple((number(weight, "A weight"), term) for weight, term in self.terms)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "constant", number(self.constant, "A constant") + 0.0)
        expressions = [term for _, term in terms]
        if any(isinstance(e, Combination) or not isinstance(e, Expression) for e in expressions):
            raise TypeError(
                f"A sum has rates, folds and quotients for terms; got {terms!r}. {_ADVICE}"
            )
        lone = len(terms) == 1 and terms[0][0] == 1 and not self.constant
        if lone or not all(weight for weight, _ in terms) or len(set(expressions)) < len(terms):
            raise ValueError(
                f"A sum has distinct terms, none of them zero; got {terms!r}. {_ADVICE}"
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


_ADVICE = "Write it with + and *, as in 0.5 * fpr + 0.5 * fnr."


def add(left: Expression, right: Operand) -> Expression:
    """The sum of two expressions."""
    (terms, constant), (more, other) = _linear(left), _linear(lifted(right))
    return _combine(terms + more, constant + other)


def scaled(
    expression: Expression, operation: Callable[[float, float], float], by: float
) -> Expression:
    """The expression with ``operation(weight, by)`` for every weight."""
    terms, constant = _linear(expression)
    scaled_terms = tuple((operation(a, float(by)), term) for a, term in terms)
    return _combine(scaled_terms, operation(constant, float(by)))


def lifted(value: Operand) -> Expression:
    """Numbers as expressions, too."""
    return value if isinstance(value, Expression) else Combination((), value)


def _linear(expression: Expression) -> tuple[Terms, float]:
    if isinstance(expression, Combination):
        return expression.terms, expression.constant
    return ((1.0, expression),), 0.0


def _combine(terms: Terms, constant: float) -> Expression:
    """The sum in normal form: equal terms merged, zeros dropped, a lone term left as it is."""
    merged: dict[Expression, float] = {}
    for weight, term in terms:
        merged[term] = merged.get(term, 0.0) + weight
    kept = tuple((weight, term) for term, weight in merged.items() if weight)
    if constant == 0 and len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return Combination(kept, constant)
