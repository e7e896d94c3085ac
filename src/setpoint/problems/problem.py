"""What the user wants, as one value: make a rate as good as possible while holding others.

>>> from setpoint.rates import fnr, fpr
>>> problem = Problem(minimize=fnr, subject_to=fpr <= 0.01)
>>> print(problem)
minimize fnr subject to fpr <= 0.01
>>> Problem.parse(str(problem)) == problem
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from setpoint.problems.class_checks import check_classes
from setpoint.problems.validation import (
    DEFAULT_POINTS,
    PER_GROUP,
    check_objective,
    check_query,
    check_targets,
    count_thresholds,
    listed,
)
from setpoint.rates import (
    Bound,
    Expression,
    Range,
    Rate,
    Setpoint,
    Target,
    Where,
    column_name,
)

if TYPE_CHECKING:
    from setpoint.problems.choice import Choice


Kind = Literal["plain", "groups", "classes", "queries"]


@dataclass(frozen=True, init=False, slots=True)
class Problem:
    """An objective and what it is subject to.

    Args:
        minimize: The expression to make small, or
        maximize: the expression to make large: exactly one of the two.
        subject_to: One target or several: bounds (``fpr <= 0.01``), a setpoint (``fpr.at(0.01)``)
            or a range (``recall.over(0.95, 1)``: the mean of the objective over the range).
        thresholds: For a range the number of bins, one threshold at each mid-point (default 10).
            Otherwise one threshold for everyone (``"shared"``, the default), or ``"per group"``.

    Attributes:
        query: The column whose values are queries, each with thresholds of its own: :meth:`per`.
    """

    objective: Expression
    maximize: bool
    subject_to: tuple[Target, ...]
    thresholds: int | Literal["per group"]
    query: str | None

    def __init__(
        self,
        *,
        minimize: Expression | None = None,
        maximize: Expression | None = None,
        subject_to: Target | Iterable[Target] = (),
        thresholds: int | str | None = None,
    ) -> None:
        if (minimize is None) == (maximize is None):
            raise TypeError("A problem has one objective: give minimize= or maximize=, not both.")
        objective = minimize if minimize is not None else maximize
        targets = listed(subject_to)
        check_objective(objective, "maximize" if minimize is None else "minimize")
        set_ = object.__setattr__
        set_(self, "objective", objective)
        set_(self, "maximize", minimize is None)
        set_(self, "subject_to", targets)
        set_(self, "thresholds", count_thresholds(thresholds, targets))
        set_(self, "query", None)
        check_targets(targets, self.thresholds)
        check_classes(self.objective, targets, self.thresholds)

    def per(self, column: str = "query") -> Problem:
        """This problem in every query: thresholds of its own for each, the mean over queries.

        >>> from setpoint import precision_at_k
        >>> print(precision_at_k(10).per("query"))
        maximize precision subject to alerts at 10 per query

        Args:
            column: What the queries are called: each value of it is one.
        """
        check_query(column, self.query, self.kind)
        same = object.__new__(Problem)
        for part in fields(self):
            object.__setattr__(same, part.name, getattr(self, part.name))
        object.__setattr__(same, "query", str(column))
        return same

    @classmethod
    def parse(cls, sentence: str) -> Problem:
        """Read a sentence such as ``maximize precision subject to recall >= 0.95``.

        The inverse of ``str``: every problem reads back as itself.
        """
        from setpoint.problems.parser import parse

        return parse(sentence)

    def evaluate(
        self,
        scores: Any,
        labels: Any,
        thresholds: Any = None,
        weights: Any = None,
        groups: Any = None,
        queries: Any = None,
        classes: Any = None,
    ) -> float:
        """The true value of the objective at hard thresholds.

        Args:
            scores: One score an example, numpy or torch; decisions are ``score > threshold``. For
                a problem of classes ``[n, K]``; decisions are ``argmax(score - threshold)``.
            labels: 0 or 1 for each example; of classes, the column.
            thresholds: Where to decide; without them the best ones on these very data are taken.
            weights: Optional, weight 2 counts an example twice.
            groups: A column of group values, or a dict of columns, for problems with slices.
            queries: The query of each example, for a problem :meth:`per` query.
            classes: What the columns of the scores are called, for a problem that calls classes by
                name; without it they are called by their numbers, from 0.
        """
        from setpoint.problems.evaluate import evaluate

        return evaluate(self, scores, labels, thresholds, weights, groups, queries, classes)

    def choose(
        self,
        scores: Any,
        labels: Any,
        weights: Any = None,
        groups: Any = None,
        queries: Any = None,
        classes: Any = None,
    ) -> Choice:
        """The hard thresholds that solve this problem on these data, with what they reach."""
        from setpoint.problems.evaluate import choose

        return choose(self, scores, labels, weights, groups, queries, classes)

    @property
    def kind(self) -> Kind:
        """What its thresholds belong to: everyone (``"plain"``), groups, classes or queries."""
        if self.thresholds == PER_GROUP:
            return "groups"
        if self.query is not None:
            return "queries"
        expressions = (self.objective, *(target.expression for target in self.subject_to))
        return "classes" if any(e.is_about_classes for e in expressions) else "plain"

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
        expressions = (self.objective, *(target.expression for target in self.subject_to))
        return tuple(rate for e in expressions for rate in e.rates())

    @property
    def slices(self) -> tuple[Where, ...]:
        """Every slice of the data whose counts are needed; ``()`` is everyone, always first."""
        return tuple(dict.fromkeys([(), *(rate.where for rate in self.rates)]))

    def __str__(self) -> str:
        text = self._without_query()
        return text if self.query is None else f"{text} per {column_name(self.query)}"

    def _without_query(self) -> str:
        text = f"{'maximize' if self.maximize else 'minimize'} {self.objective}"
        if self.swept is not None:
            plural = "" if self.thresholds == 1 else "s"
            return f"{text} over {self.swept} with {self.thresholds} threshold{plural}"
        if self.subject_to:
            text += f" subject to {' and '.join(map(str, self.subject_to))}"
        return f"{text} with thresholds per group" if self.thresholds == PER_GROUP else text

    def __repr__(self) -> str:
        return f"Problem.parse({str(self)!r})"
