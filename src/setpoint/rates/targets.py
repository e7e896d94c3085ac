"""What can be asked of a rate: a bound, a setpoint, a range to sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from setpoint._checks import number, share
from setpoint.rates.counts import Array, numeral

if TYPE_CHECKING:
    from setpoint.rates.algebra import Expression, Tables


def _level(expression: Expression, level: float, *, ends: bool = True) -> float:
    what = f"The level of {expression}"
    if expression.is_share:
        return share(level, what, ends=ends) + 0.0
    return number(level, what) + 0.0


@dataclass(frozen=True, slots=True)
class Bound:
    """An inequality: ``fpr <= 0.01``."""

    expression: Expression
    sense: str
    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _level(self.expression, self.level))

    def gap(self, tables: Tables) -> Array:
        """By how much the bound is broken: positive if it is, NaN for 0/0."""
        excess = self.expression.of(tables) - self.level
        return excess if self.sense == "<=" else -excess

    @property
    def caps(self) -> bool | None:
        """True if accepting more examples can only break it, False if only mend it, else None."""
        direction = self.expression.direction
        return None if not direction else (direction > 0) == (self.sense == "<=")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"`{self}` is a goal, not a truth value. For a range write two bounds, as in "
            "subject_to=[fpr >= 0.1, fpr <= 0.2]; python reads 0.1 <= fpr <= 0.2 as only one."
        )

    def __str__(self) -> str:
        return f"{self.expression} {self.sense} {numeral(self.level)}"


@dataclass(frozen=True, slots=True)
class Setpoint:
    """A rate held at a value: ``fpr.at(0.01)``, the attainable rate nearest to it."""

    expression: Expression
    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _level(self.expression, self.level, ends=False))

    def gap(self, tables: Tables) -> Array:
        """How far the rate is from its setpoint, either way."""
        return abs(self.expression.of(tables) - self.level)

    @property
    def caps(self) -> bool | None:
        """As :attr:`Bound.caps`, for the side on which the threshold is put.

        Rates of the positives are held from above (like a floor), the others from below.
        """
        direction = self.expression.direction
        if not direction:
            return None
        return any(rate.numerator.fp != rate.numerator.tn for rate in self.expression.rates())

    def __str__(self) -> str:
        return f"{self.expression} at {numeral(self.level)}"


@dataclass(frozen=True, slots=True)
class Range:
    """A rate swept over a range, one threshold for each bin: ``recall.over(0.95, 1)``."""

    expression: Expression
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.expression.direction:
            raise ValueError(
                f"Only a rate that moves one way with the threshold can be swept; {self.expression}"
                " does not. Use fpr, recall, fnr, tnr or coverage."
            )
        for end in ("low", "high"):
            object.__setattr__(self, end, _level(self.expression, getattr(self, end)))
        if not self.low < self.high:
            raise ValueError(f"A range goes from low to high; got [{self.low:g}, {self.high:g}].")

    def setpoints(self, count: int) -> tuple[Setpoint, ...]:
        """The mid-points of ``count`` equal bins."""
        width = (self.high - self.low) / count
        return tuple(Setpoint(self.expression, self.low + (i + 0.5) * width) for i in range(count))

    def __str__(self) -> str:
        return f"{self.expression} in [{numeral(self.low)}, {numeral(self.high)}]"


Target = Bound | Setpoint | Range
