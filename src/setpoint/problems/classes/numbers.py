"""A problem that calls classes by name, with the columns of the scores instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from setpoint.problems.classes.names import class_names_of, column_of_class
from setpoint.problems.problem import Problem
from setpoint.rates import Bound, Expression, Range, Rate, TopK


def numbered(problem: Problem, classes: Sequence[Any]) -> Problem:
    """The same problem with every class called by its column.

    >>> print(numbered(Problem.parse('maximize recall of "dog"'), ["cat", "dog"]))
    maximize recall of 1
    """
    names = class_names_of(classes, len(classes))
    targets = []
    for target in problem.subject_to:
        expression = _numbered(target.expression, names)
        if isinstance(target, Range):
            raise ValueError("A problem of classes has no ranges.")
        same = isinstance(target, Bound)
        targets.append(
            Bound(expression, target.sense, target.level)  # type: ignore[union-attr]
            if same
            else expression.at(target.level)
        )
    objective = _numbered(problem.objective, names)
    if problem.maximize:
        return Problem(maximize=objective, subject_to=targets)
    return Problem(minimize=objective, subject_to=targets)


def _numbered(expression: Expression, names: tuple[Any, ...]) -> Expression:
    if isinstance(expression, (Rate, TopK)):
        if not expression.classes:
            return expression
        columns = tuple(column_of_class(name, names) for name in expression.classes)
        return replace(expression, classes=()).of_classes(tuple(sorted(columns)))
    if not expression.children or expression.about_classes:
        return expression
    return expression._rebuilt(tuple(_numbered(child, names) for child in expression.children))
