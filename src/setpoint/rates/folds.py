"""The absolute value, the largest and the smallest of expressions, and one over another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from setpoint.rates.arrays import Array, divide, larger, sign, weighted_sum
from setpoint.rates.combination import lifted
from setpoint.rates.expression import (
    Expression,
    Gradient,
    Operand,
    Tables,
    as_factor,
    common_sign,
    is_operand,
)


@dataclass(frozen=True, repr=False)
class Fold(Expression):
    """The absolute value of one expression, or the largest or smallest of several."""

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
        """The gradient of the part that counts; equal parts share it."""
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

    def __post_init__(self) -> None:
        _check_expressions(self.children)
        self._note(self.top.scale / (self.bottom.scale or 1.0))

    @property
    def children(self) -> tuple[Expression, ...]:
        """What is above and what is below."""
        return (self.top, self.bottom)

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0/0 is NaN."""
        return divide(self.top.value(tables), self.bottom.value(tables))

    def gradient(self, tables: Tables) -> Gradient:
        """The quotient rule."""
        below = self.bottom.value(tables)
        first, second = divide(1.0, below), divide(-self.value(tables), below)
        return weighted_sum(
            (first, self.top.gradient(tables)), (second, self.bottom.gradient(tables))
        )

    def _rebuilt(self, children: tuple[Expression, ...]) -> Quotient:
        return Quotient(*children)

    def __str__(self) -> str:
        return self._name or f"{as_factor(self.top)} / {as_factor(self.bottom)}"


def maximum(*expressions: Operand) -> Expression:
    """The largest of several expressions: ``maximum(fpr, fnr)``."""
    return _fold("max", expressions)


def minimum(*expressions: Operand) -> Expression:
    """The smallest of several expressions."""
    return _fold("min", expressions)


def _fold(kind: str, expressions: tuple[Operand, ...]) -> Expression:
    for e in expressions:
        if not is_operand(e):
            raise TypeError(f"{kind}imum takes rates, combinations and numbers; got {e!r}.")
    if not expressions:
        raise TypeError(f"{kind}imum needs at least one expression.")
    parts = tuple(lifted(e) for e in expressions)
    return parts[0] if len(parts) == 1 else Fold(kind, parts)


def _check_expressions(values: Iterable[object]) -> None:
    for value in values:
        if not isinstance(value, Expression):
            raise TypeError(f"Expected a rate or an expression made of rates; got {value!r}.")
