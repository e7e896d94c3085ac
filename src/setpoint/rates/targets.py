"""What can be asked of a rate: a bound, a setpoint, a range to sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from setpoint._checks import number, share
from setpoint.rates.counts import Array
from setpoint.rates.slices import numeral

if TYPE_CHECKING:
    from setpoint.rates.expression import Expression, Tables


class _Goal:
    """Something to be reached. It has no truth value, or ``and`` would silently drop one."""

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"`{self}` is a goal, not a truth value. List goals, as in "
            "subject_to=[fpr >= 0.1, fpr <= 0.2]: of `0.1 <= fpr <= 0.2` and of `a and b` python "
            "would keep only one."
        )

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class Bound(_Goal):
    """An inequality: ``fpr <= 0.01``.

    Examples:
        >>> from setpoint import fpr
        >>> bound = fpr <= 0.01
        >>> bound.level, bound.sense
        (0.01, '<=')
    """

    expression: Expression
    sense: str
    level: float

    def __post_init__(self) -> None:
        if self.sense not in ("<=", ">="):
            raise ValueError(f"A bound is '<=' or '>='; got {self.sense!r}.")
        object.__setattr__(self, "level", _checked_level(self.expression, self.level))

    def gap(self, tables: Tables) -> Array:
        """By how much the bound is broken: positive if it is, NaN for 0/0."""
        excess = self.expression.of(tables) - self.level
        return excess if self.sense == "<=" else -excess

    @property
    def caps(self) -> bool | None:
        """True if accepting more examples can only break it, False if only mend it, else None."""
        direction = self.expression.direction
        return None if not direction else (direction > 0) == (self.sense == "<=")

    @property
    def excludes_nothing(self) -> bool:
        """Whether every threshold keeps it: ``fpr <= 1``, ``recall >= 0``."""
        return self.expression.is_share and self.level == (1 if self.sense == "<=" else 0)

    def __str__(self) -> str:
        return f"{self.expression} {self.sense} {numeral(self.level)}"


@dataclass(frozen=True, repr=False)
class Setpoint(_Goal):
    """A rate held at a value: ``fpr.at(0.01)``, the attainable rate nearest to it.

    Examples:
        >>> from setpoint import fpr
        >>> fpr.at(0.01)
        fpr at 0.01
    """

    expression: Expression
    level: float

    def __post_init__(self) -> None:
        level = _checked_level(self.expression, self.level)
        object.__setattr__(self, "level", level)
        if self.expression.is_share and level in (0, 1):
            bound = f"{self.expression} {'>=' if level else '<='} {level:g}"
            raise ValueError(
                f"The level of {self.expression} must lie between 0 and 1, ends excluded; "
                f"got {level:g}. To reach the end itself write `{bound}`."
            )

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


@dataclass(frozen=True, repr=False)
class Range(_Goal):
    """A rate swept over a range, one threshold for each bin: ``recall.over(0.95, 1)``.

    A rate that moves one way with the threshold is held at each level. Precision and other shares
    of right decisions go up and down: of them, each level is a floor.

    Examples:
        >>> from setpoint import recall
        >>> recall.over(0.95, 1).levels(2)
        (0.9624999999999999, 0.9875)
    """

    expression: Expression
    low: float
    high: float

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, _checked_level(self.expression, getattr(self, end)))
        if not self.expression.direction and not self.floors:
            raise ValueError(
                "Only a rate that moves one way with the threshold, or a share of right decisions, "
                f"can be swept; {self.expression} is neither. Use fpr, recall, fnr, tnr, coverage "
                "or precision."
            )
        if not self.low < (self.low + self.high) / 2 < self.high:
            raise ValueError(f"A range goes from low to high; got [{self.low:g}, {self.high:g}].")

    def levels(self, count: int) -> tuple[float, ...]:
        """The mid-points of ``count`` equal bins."""
        width = (self.high - self.low) / count
        return tuple(self.low + (i + 0.5) * width for i in range(count))

    @property
    def floors(self) -> bool:
        """Whether each level is a floor: the rate is a share of right decisions, like precision."""
        if self.expression.direction is not None or not self.expression.is_share:
            return False
        return all(r.numerator.fp == 0 == r.numerator.fn for r in self.expression.rates())

    def setpoints(self, count: int) -> tuple[Bound | Setpoint, ...]:
        """What each of ``count`` equal bins asks for: the rate of its mid-point."""
        if self.floors:
            return tuple(Bound(self.expression, ">=", level) for level in self.levels(count))
        return tuple(Setpoint(self.expression, level) for level in self.levels(count))

    def __str__(self) -> str:
        return f"{self.expression} in [{numeral(self.low)}, {numeral(self.high)}]"


Target = Bound | Setpoint | Range


def _checked_level(expression: Expression, level: float) -> float:
    """The level as a float; -0.0 becomes 0.0."""
    if not hasattr(expression, "is_share"):
        raise TypeError(f"Targets are set for rates, as in fpr <= 0.01; got {expression!r}.")
    check = share if expression.is_share else number
    return check(level, f"The level of {expression}") + 0.0
