"""What a goal says a mistake weighs, class by class.

Near an operating point a goal is linear in the confusion matrix: taking class ``i`` for ``j`` costs
``c_ij`` more than taking it for ``i``. Two classes are then best told apart where
``p_i c_ij = p_j c_ji``, so the logarithms of their weights differ by ``log(c_ij / c_ji)``. For
balanced error that is a weight of 1 / share of the class; for plain error all weights are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import quiet
from setpoint.axes.class_data import class_names_of, members_of, top_ks
from setpoint.axes.confusion import Matrix
from setpoint.problems import Problem
from setpoint.rates import Across, Classes, Cost, Expression, Fold, Gradient, Rate
from setpoint.solvers.classes.soft import by_entry

Floats = NDArray[np.float64]
NONE = 1e-9
"""Of the largest cost: below this share a mistake costs nothing."""


def log_weights(problem: Problem, members: Mapping[Classes, Floats], shares: Floats) -> Floats:
    """The logarithm of each class's weight, ``[K]``, adding up to zero.

    Costs are read where nothing is known yet: every class is predicted as often as it occurs,
    whatever is true. Zero for two classes (they are the binary problem, with its main loss), and
    for goals that name a class and have another slope at every operating point (an F score of
    "cat"), or for which some mistake is free while its opposite is not: these say nothing
    about weights.

    Args:
        problem: What is wanted.
        members: For each set of classes it names, 1 for the members.
        shares: How often each class occurs.
    """
    count = len(shares)
    if count == 2 or any(_is_bent(node) for node in problem.objective.nodes()):
        return np.zeros(count)
    costs = mistakes(problem, members, shares)
    counts = np.abs(costs) > NONE * np.abs(costs).max()
    if (costs[counts] < 0).any() or (counts != counts.T).any():
        return np.zeros(count)
    return _fitted(costs, counts)


def leans(problem: Problem, classes: Sequence[Any] | None) -> bool:
    """Whether a goal gives classes that occur more or less often (three at least) other weights."""
    names = _asked_for(problem) if classes is None else class_names_of(classes, len(classes))
    shares = np.arange(1.0, len(names) + 1)
    return bool(log_weights(problem, members_of(problem, names), shares / shares.sum()).any())


def _asked_for(problem: Problem) -> tuple[Any, ...]:
    """Three classes at least, and all that the problem speaks of."""
    expressions = (problem.objective, *(target.expression for target in problem.subject_to))
    every = [node for expression in expressions for node in expression.nodes()]
    named = dict.fromkeys(name for node in every for name in getattr(node, "classes", ()))
    sizes = [len(node.costs) for node in every if isinstance(node, Cost)]
    count = max([*sizes, len(named)]) if sizes else max(3, len(named))
    others = (i for i in range(count + len(named)) if i not in named)
    return (*named, *islice(others, count - len(named)))


def mistakes(problem: Problem, members: Mapping[Classes, Floats], shares: Floats) -> Floats:
    """What taking the class of a row for that of a column costs more than being right."""
    objective = _evenly(problem.objective)
    hits = {k: shares * min(1.0, k / len(shares)) for k in top_ks(problem)}
    table = Matrix(np.outer(shares, shares), members, hits).table()
    with quiet(np):
        slopes = _entries(objective.gradient(dict.fromkeys(problem.slices, table)), len(shares))
    worse = slopes.diagonal()[:, None] - slopes
    return worse if problem.maximize else -worse


def _fitted(costs: Floats, counts: NDArray[np.bool_]) -> Floats:
    """The weights whose ratios are nearest to what all pairs of classes ask for."""
    ratios = np.zeros_like(costs)
    ratios[counts] = np.log(costs[counts] / costs.T[counts])
    between = np.diag(counts.sum(1)) - counts.astype(np.float64)
    found = np.linalg.lstsq(between, ratios.sum(1), rcond=None)[0]
    return np.asarray(found - found.mean())


def _evenly(expression: Expression) -> Expression:
    """The mean in place of the worst: all classes (or parts) may be it before the end."""
    if isinstance(expression, Across):
        return Across("macro", expression.inner)
    if isinstance(expression, Fold) and expression.kind != "abs":
        total = sum(map(_evenly, expression.parts[1:]), _evenly(expression.parts[0]))
        return total / len(expression.parts)
    if not expression.children:
        return expression
    return expression._rebuilt(tuple(map(_evenly, expression.children)))


def _is_bent(node: Expression) -> bool:
    return isinstance(node, Rate) and bool(node.classes) and not node.is_steady


def _entries(by_count: Gradient, count: int) -> Floats:
    total = np.zeros((count, count))
    for (_, kind), slope in by_count.items():
        if kind < 0:
            total += np.asarray(slope)[:, None] * np.eye(count)
        else:
            total += by_entry(kind, slope, count)
    return total
