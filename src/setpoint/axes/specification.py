"""What is wanted, as a plain record: everything that a search for thresholds has to know.

:class:`setpoint.problems.Problem` is this record with a checked constructor, a sentence and the
methods ``choose`` and ``evaluate``. What searches for thresholds takes a :class:`Specification`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from setpoint.rates import Bound, Expression, Range, Rate, Setpoint, Target, Where

PER_GROUP: Literal["per group"] = "per group"
DEFAULT_POINTS = 10
"""The number of thresholds of a range, if none is given."""

AxisName = Literal["everyone", "groups", "classes", "queries"]
S = TypeVar("S", bound="Specification")


@dataclass(frozen=True, slots=True)
class Specification:
    """An objective and what it is subject to.

    Attributes:
        objective: The expression to make small or large.
        maximize: Whether it is to be made large.
        subject_to: Bounds, setpoints, or one range.
        thresholds: How many there are, or ``"per group"``.
        query: The column whose values are queries, each with thresholds of its own, or None.
    """

    objective: Expression
    maximize: bool
    subject_to: tuple[Target, ...] = ()
    thresholds: int | Literal["per group"] = 1
    query: str | None = None

    def changed(self: S, **parts: Any) -> S:
        """A copy of the same type with other values of the named fields; nothing is checked."""
        same = object.__new__(type(self))
        old = {part.name: getattr(self, part.name) for part in fields(Specification)}
        Specification.__init__(same, **{**old, **parts})
        return same

    @property
    def kind(self) -> AxisName:
        """Who shares a threshold: everyone, groups, classes or queries."""
        if self.thresholds == PER_GROUP:
            return "groups"
        if self.query is not None:
            return "queries"
        return "classes" if any(e.is_about_classes for e in self.expressions) else "everyone"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The objective, then what each target bounds, holds or sweeps."""
        return (self.objective, *(target.expression for target in self.subject_to))

    def nodes(self) -> Iterator[Expression]:
        """Every expression, and those inside it; see :meth:`Expression.nodes`."""
        for expression in self.expressions:
            yield from expression.nodes()

    @property
    def swept(self) -> Range | None:
        """The range whose mean is the objective, if this problem is an area."""
        first = self.subject_to[0] if self.subject_to else None
        return first if isinstance(first, Range) else None

    @property
    def points(self) -> tuple[tuple[Bound | Setpoint, ...], ...]:
        """For each threshold, what it has to hold."""
        if self.swept is not None:
            count = self.thresholds if isinstance(self.thresholds, int) else DEFAULT_POINTS
            return tuple((setpoint,) for setpoint in self.swept.setpoints(count))
        return (tuple(t for t in self.subject_to if not isinstance(t, Range)),)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Every rate in the objective and the targets."""
        return tuple(rate for e in self.expressions for rate in e.rates())

    @property
    def slices(self) -> tuple[Where, ...]:
        """Every slice of the data whose counts are needed; ``()`` is everyone, always first."""
        return tuple(dict.fromkeys([(), *(rate.where for rate in self.rates)]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that groups are told apart by, sorted."""
        return tuple(sorted({column for where in self.slices for column, _ in where}))
