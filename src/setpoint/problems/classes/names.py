"""What classes are called, and which of them a problem speaks of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.problems.class_checks import nodes
from setpoint.problems.problem import Problem
from setpoint.rates import Classes, Cost, Rate, TopK

Floats = NDArray[np.float64]


def class_names_of(classes: Iterable[Any] | None, count: int) -> tuple[Any, ...]:
    """What the columns are called: as given, or by their numbers."""
    names = tuple(range(count)) if classes is None else tuple(classes)
    names = tuple(name.item() if hasattr(name, "item") else name for name in names)
    if len(names) != count:
        raise ValueError(
            f"classes= must name every column of the scores: {count} of them; got {len(names)}."
        )
    if len(set(names)) < count:
        raise ValueError(f"classes= must have a name of its own for every column; got {names}.")
    return names


def members_of(problem: Problem, names: tuple[Any, ...]) -> dict[Classes, Floats]:
    """For every set of classes that the problem speaks of, 1 for its members."""
    found: dict[Classes, Floats] = {(): np.ones(len(names))}
    expressions = (problem.objective, *(target.expression for target in problem.subject_to))
    for node in (node for expression in expressions for node in nodes(expression)):
        if isinstance(node, Cost) and len(node.costs) != len(names):
            raise ValueError(
                f"The cost matrix is of {len(node.costs)} classes; the scores are of {len(names)}."
            )
        if isinstance(node, (Rate, TopK)) and node.classes:
            one = np.zeros(len(names))
            one[[column_of_class(name, names) for name in node.classes]] = 1
            found[node.classes] = one
    return found


def column_of_class(name: str | int, names: tuple[Any, ...]) -> int:
    """Which column of the scores a class is."""
    if name in names:
        return names.index(name)
    if isinstance(name, int) and str(name) in names:  # a class that is called by a numeral
        return names.index(str(name))
    known = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    unnamed = isinstance(name, str) and names == tuple(range(len(names)))
    hint = " Say what the columns are called: classes=[...]." if unnamed else ""
    raise ValueError(f"There is no class {name!r}; there are {known}.{hint}")


def top_ks(problem: Problem) -> frozenset[int]:
    """Every k that the problem asks the first k of."""
    expressions = (problem.objective, *(target.expression for target in problem.subject_to))
    inside = (_inside(e) for e in expressions)
    return frozenset(node.k for found in inside for node in found if isinstance(node, TopK))


def _inside(expression: Any) -> Any:
    yield expression
    for child in expression.children:
        yield from _inside(child)
