"""Scores of several classes as checked numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_length, check_scores, check_weights
from setpoint.problems.classes.names import class_names_of, members_of
from setpoint.problems.inputs import group_column, to_numpy
from setpoint.problems.problem import Problem
from setpoint.rates import Classes, Where

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class ClassData:
    """Examples that are there (weight above zero), in float64.

    Attributes:
        scores: ``[n, K]``.
        labels: ``[n]``, from 0 to K - 1.
        weights: ``[n]``.
        inside: For each slice, the weights of its members, else 0.
        members: For each set of classes of the problem, 1 for its members, ``[K]``.
        names: What the classes are called, ``[K]``.
        rows: Which rows of the input these are.
    """

    scores: Floats
    labels: Whole
    weights: Floats
    inside: Mapping[Where, Floats]
    members: Mapping[Classes, Floats]
    names: tuple[Any, ...]
    rows: Whole

    @property
    def truth(self) -> Floats:
        """The weight of each class."""
        return added(self.labels, self.weights, self.scores.shape[1])


def added(places: Whole, weights: Any, count: int) -> Floats:
    """The sum of the weights at each of ``count`` places."""
    return np.bincount(places, weights, count).astype(np.float64)


def read_data(
    problem: Problem,
    scores: Any,
    labels: Any,
    weights: Any = None,
    groups: Any = None,
    classes: Sequence[Any] | None = None,
) -> ClassData:
    """Checked arrays of numpy, torch or plain lists; nothing about their content is an error.

    Args:
        problem: Says which slices and sets of classes are looked at.
        scores: One column for each class, ``[n, K]``.
        labels: The column of each example's class, ``[n]``.
        weights: Optional, one an example.
        groups: A column of group values, or a dict of columns.
        classes: What the columns are called, in their order.
    """
    s, y = to_numpy(scores, "scores"), to_numpy(labels, "labels")
    if s.ndim != 2 or s.shape[1] < 2:
        raise ValueError(
            f"`{problem}` is about classes: scores are [n, K], a column for each class; "
            f"got the shape {s.shape}."
        )
    check_scores(s)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    check_length(y, s[:, 0], "labels")
    check_class_labels(y, s.shape[1])
    w = np.ones(len(s)) if weights is None else to_numpy(weights, "weights").reshape(-1)
    check_weights(w, s[:, 0])
    rows = np.flatnonzero(w > 0)
    names = class_names_of(classes, s.shape[1])
    inside = {where: w * _members(problem, where, groups, s[:, 0]) for where in problem.slices}
    return ClassData(
        s[rows],
        y[rows].astype(np.int64),
        w[rows],
        {where: mask[rows] for where, mask in inside.items()},
        members_of(problem, names),
        names,
        rows,
    )


def check_class_labels(labels: Floats, count: int) -> None:
    """Labels are whole numbers from 0 to K - 1."""
    wrong = (labels < 0) | (labels >= count) | (labels != np.floor(labels))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"Labels must be whole numbers from 0 to {count - 1}, one for each column of the "
            f"scores; got {labels[row]:g} in row {row}."
        )


def _members(problem: Problem, where: Where, groups: Any, first: Floats) -> NDArray[np.bool_]:
    inside = np.ones(first.shape, dtype=bool)
    for column, value in where:
        inside &= np.asarray(group_column(problem, column, groups, first) == value)
    return inside
