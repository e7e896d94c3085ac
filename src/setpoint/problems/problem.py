"""What the user wants, as one value: make a rate as good as possible while holding others.

>>> from setpoint.rates import fnr, fpr
>>> problem = Problem(minimize=fnr, subject_to=fpr <= 0.01)
>>> print(problem)
minimize fnr subject to fpr <= 0.01
>>> Problem.parse(str(problem)) == problem
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.batch import ScoredExamples, column_of
from setpoint.problems.capacity import PERIOD_WORDS
from setpoint.problems.parser import parse, parse_goal
from setpoint.problems.validation import as_targets, check_query, refuse_amounts, specified
from setpoint.rates import Expression, Target, by_amounts, column_name, quote

if TYPE_CHECKING:
    from setpoint.axes.choice import Choice


_AMOUNTS = "amounts"
"""The column that amounts become."""


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Problem(Specification):
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

    Examples:
        >>> from setpoint import fnr, fpr
        >>> problem = Problem(minimize=fnr, subject_to=fpr <= 0.25)
        >>> print(problem)
        minimize fnr subject to fpr <= 0.25
        >>> Problem.parse(str(problem)) == problem
        True
        >>> scores, labels = [5.0, 4.0, 3.0, 2.0, 1.0, 0.0], [1, 1, 0, 1, 0, 0]
        >>> round(problem.evaluate(scores, labels), 3)
        0.333
        >>> problem.choose(scores, labels).rates
        {'fnr': 0.3333333333333333, 'fpr': 0.0}
    """

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
        self._take(specified(objective, minimize is None, as_targets(subject_to), thresholds))

    def _take(self, given: Specification) -> None:
        """Become a problem with the fields of a checked specification."""
        Specification.__init__(
            self, given.objective, given.maximize, given.subject_to, given.thresholds, given.query
        )

    def per(self, column: str = "query") -> Problem:
        """This problem in every query: thresholds of its own for each, the mean over queries.

        Args:
            column: What the queries are called: each value of it is one.

        Examples:
            >>> from setpoint import precision_at_k
            >>> print(precision_at_k(10).per("query"))
            maximize precision subject to alerts at 10 per query
        """
        check_query(column, self.query, self.kind)
        refuse_amounts(self.expressions, "thresholds per query")
        return self.changed(query=str(column))

    @classmethod
    def parse(cls, sentence: str) -> Problem:
        """Read a sentence such as ``maximize precision subject to recall >= 0.95``.

        The inverse of ``str``: every problem reads back as itself.
        """
        return cls._of(parse(sentence))

    @classmethod
    def _of(cls, given: Specification) -> Problem:
        problem = object.__new__(cls)
        problem._take(given)
        return problem

    def evaluate(
        self,
        scores: Any,
        labels: Any,
        thresholds: Any = None,
        weights: Any = None,
        groups: Any = None,
        queries: Any = None,
        classes: Any = None,
        amounts: Any = None,
    ) -> float:
        """The true value of the objective at hard thresholds.

        Args:
            scores: One score per example, numpy or torch; decisions are ``score > threshold``. For
                a problem of classes ``[n, K]``; decisions are ``argmax(score - threshold)``.
            labels: 0 or 1 for each example; of classes, the column.
            thresholds: Where to decide; without them the best ones on these very data are taken.
            weights: Optional, weight 2 counts an example twice.
            groups: A column of group values, or a dict of columns, for problems with slices.
            queries: The query of each example, for a problem :meth:`per` query.
            classes: What the columns of the scores are called, for a problem that calls classes by
                name; without it they are called by their numbers, from 0.
            amounts: What each row is worth: in ``cost(miss=1, false_alarm=5)`` a miss costs that.
        """
        from setpoint.axes.evaluation import evaluate_problem

        problem, groups = self.priced(groups, amounts)
        examples = ScoredExamples(scores, labels, weights, groups, queries, classes)
        return evaluate_problem(problem, examples, thresholds)

    def choose(
        self,
        scores: Any,
        labels: Any,
        weights: Any = None,
        groups: Any = None,
        queries: Any = None,
        classes: Any = None,
        amounts: Any = None,
    ) -> Choice:
        """The hard thresholds that solve this problem on these data, with what they reach."""
        from setpoint.axes.evaluation import choose_thresholds

        problem, groups = self.priced(groups, amounts)
        return choose_thresholds(
            problem, ScoredExamples(scores, labels, weights, groups, queries, classes)
        )

    def priced(self, groups: Any, amounts: Any) -> tuple[Problem, Any]:
        """This problem with its costs by amounts, and the amounts among the columns of groups."""
        if amounts is None:
            return self, groups
        objective = by_amounts(self.objective, _AMOUNTS)
        targets = tuple(
            replace(target, expression=by_amounts(target.expression, _AMOUNTS))
            for target in self.subject_to
        )
        if (objective, targets) == (self.objective, self.subject_to):
            raise ValueError(f"`{self}` has no cost(miss=, false_alarm=) that amounts= enter.")
        if groups is not None and not isinstance(groups, Mapping):
            groups = {name: column_of(groups, name, set(self.columns)) for name in self.columns}
        return self.changed(objective=objective, subject_to=targets), {
            **(groups or {}),
            _AMOUNTS: amounts,
        }

    def __str__(self) -> str:
        text = self._without_query()
        if self.query is None:
            return text
        by_time = self.query.lower() in PERIOD_WORDS  # "per day" is about alerts in time
        return f"{text} per {quote(self.query) if by_time else column_name(self.query)}"

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


def read_goal(sentence: str) -> Problem | tuple[Target, ...]:
    """The problem that a sentence describes, or the targets if it is about these alone."""
    found = parse_goal(sentence)
    return found if isinstance(found, tuple) else Problem._of(found)


def merit(problem: Problem, scores: Any, labels: Any, **given: Any) -> float:
    """The objective on these data, negated if it is minimized.

    Where no threshold meets the targets it is the worst there is: of a share the worst share, of
    any other objective minus infinity, so that a model that breaks the targets never wins.

    Args:
        problem: What is wanted.
        scores: As for :meth:`Problem.evaluate`.
        labels: As there.
        **given: Whatever else is known of each example.
    """
    from setpoint.axes.choice import Infeasible, worst

    try:
        value = problem.evaluate(scores, labels, **given)
    except Infeasible:
        value = worst(problem)
        if np.isnan(value):
            return -np.inf
    return float(value if problem.maximize else -value)
