"""Examples of several classes as checked numpy arrays, names of classes, and decisions.

Scores are ``[n, K]``, there is one shift per class, and ``argmax(score - shift)`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints, to_numpy
from setpoint.axes.sample import members
from setpoint.axes.specification import S, Specification
from setpoint.batch import (
    ScoredExamples,
    as_column,
    check_length,
    check_scores,
    check_weights,
    refuse_rows,
)
from setpoint.rates import Bound, ClassSet, Cost, Expression, Range, Rate, TopK, Where


@dataclass(frozen=True)
class ClassData:
    """Examples that are there (weight above zero), in float64.

    Attributes:
        scores: ``[n, K]``.
        labels: ``[n]``, from 0 to K - 1.
        weights: ``[n]``.
        inside: For each slice, the weights of its members, else 0.
        members: For each set of classes of the problem, 1 for its members, ``[K]``.
        ks: Every ``k`` of the top-k shares in the problem.
        names: What the classes are called, ``[K]``.
        rows: Which rows of the input these are.
        size: How many rows the input has.
    """

    scores: Floats
    labels: Ints
    weights: Floats
    inside: Mapping[Where, Floats]
    members: Mapping[ClassSet, Floats]
    ks: frozenset[int]
    names: tuple[Any, ...]
    rows: Ints
    size: int

    @property
    def truth(self) -> Floats:
        """The weight of each class."""
        return sum_by(self.labels, self.weights, self.scores.shape[1])


def read_data(problem: Specification, examples: ScoredExamples) -> ClassData:
    """Checked arrays of numpy, torch or plain lists; nothing about their content is an error.

    The problem says which slices and sets of classes are looked at.
    """
    scores, labels, weights, groups, _, classes = examples
    s, y = to_numpy(scores, "scores"), to_numpy(labels, "labels")
    if s.ndim != 2 or s.shape[1] < 2:
        raise ValueError(
            f"`{problem}` is about classes: scores are [n, K], a column for each class; "
            f"got the shape {s.shape}."
        )
    check_scores(s)
    y = as_column(y)
    if y.shape == s.shape:
        raise ValueError(
            f"labels must be one class number per row, [{len(s)}]; got the shape {y.shape}. Of "
            "one-hot labels pass labels.argmax(1)."
        )
    check_length(y, s[:, 0], "labels")
    check_class_labels(y, s.shape[1])
    w = np.ones(len(s)) if weights is None else to_numpy(weights, "weights").reshape(-1)
    check_weights(w, s[:, 0])
    rows = np.flatnonzero(w > 0)
    names = class_names_of(classes, s.shape[1])
    inside = {
        where: w * members(problem.slices, where, groups, s[:, 0]) for where in problem.slices
    }
    return ClassData(
        s[rows],
        y[rows].astype(np.int64),
        w[rows],
        {where: mask[rows] for where, mask in inside.items()},
        members_of(problem, names),
        top_ks(problem),
        names,
        rows,
        len(s),
    )


def check_class_labels(labels: Floats, count: int) -> None:
    """Labels are whole numbers from 0 to K - 1."""
    wrong = (labels < 0) | (labels >= count) | (labels != np.floor(labels))
    rule = f"Labels must be whole numbers from 0 to {count - 1}, one for each column of the scores"
    refuse_rows(wrong, labels, rule)


def class_names_of(classes: Iterable[Any] | None, count: int) -> tuple[Any, ...]:
    """The names of the columns: as given, or their numbers."""
    names = tuple(range(count)) if classes is None else tuple(classes)
    names = tuple(name.item() if hasattr(name, "item") else name for name in names)
    if len(names) != count:
        raise ValueError(
            f"classes= must name every column of the scores: {count} of them; got {len(names)}."
        )
    if len(set(names)) < count:
        raise ValueError(f"classes= must have a name of its own for every column; got {names}.")
    return names


def members_of(problem: Specification, names: tuple[Any, ...]) -> dict[ClassSet, Floats]:
    """For every set of classes that the problem speaks of, 1 for its members."""
    found: dict[ClassSet, Floats] = {(): np.ones(len(names))}
    for node in problem.nodes():
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


def top_ks(problem: Specification) -> frozenset[int]:
    """Every ``k`` of the top-k shares in a problem."""
    return frozenset(node.k for node in problem.nodes() if isinstance(node, TopK))


def numbered(problem: S, classes: Sequence[Any]) -> S:
    """The problem with every class called by its column instead of its name.

    Examples:
        >>> from setpoint.problems import Problem
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
    return problem.changed(objective=objective, subject_to=tuple(targets))


def decide(scores: Any, shifts: Any) -> Ints:
    """``argmax(score - shift)`` in float64, ``[n]``; of equal ones the first."""
    return np.asarray(np.argmax(np.asarray(scores, np.float64) - np.asarray(shifts), axis=1))


def best_other(shifted: Floats, column: int) -> tuple[Floats, Ints]:
    """The highest shifted score beside ``column``, and whose it is: ``[n]`` both."""
    others = shifted.copy()
    others[:, column] = -np.inf
    best = np.argmax(others, axis=1)
    return others[np.arange(len(others)), best], best


def best_others(shifted: Floats) -> Floats:
    """For every class the highest shifted score of the others, ``[n, K]``."""
    rows = np.arange(len(shifted))
    first = np.argmax(shifted, axis=1)
    top = shifted[rows, first]
    rest = shifted.copy()
    rest[rows, first] = -np.inf
    best = np.repeat(top[:, None], shifted.shape[1], axis=1)
    best[rows, first] = rest.max(axis=1)
    return best


def class_spreads(scores: Floats) -> Floats:
    """The variance of each class's centred scores, ``[K]``: it breaks ties between classes.

    Neither the order of the classes nor a constant added to the scores of one changes it.
    """
    return np.asarray((scores - scores.mean(1, keepdims=True)).var(0))


def sum_by(places: Ints, weights: Any, count: int) -> Floats:
    """The sum of the weights at each of ``count`` places."""
    return np.bincount(places, weights, count).astype(np.float64)


def _numbered(expression: Expression, names: tuple[Any, ...]) -> Expression:
    if isinstance(expression, (Rate, TopK)):
        if not expression.classes:
            return expression
        columns = tuple(column_of_class(name, names) for name in expression.classes)
        return replace(expression, classes=()).of_classes(tuple(sorted(columns)))
    if not expression.children or expression.about_classes:
        return expression
    return expression._rebuilt(tuple(_numbered(child, names) for child in expression.children))
