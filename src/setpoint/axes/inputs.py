"""Scores, labels, weights and groups from numpy, torch or plain lists, as checked numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats, to_numpy
from setpoint.axes.specification import Specification
from setpoint.batch import check_labels, check_length, check_scores, check_weights, column_of
from setpoint.rates import Where

Masks = dict[Where, tuple[Floats, Floats]]
"""For each slice, the weight of every example as a positive and as a negative."""


def read_inputs(
    problem: Specification, scores: Any, labels: Any, weights: Any = None, groups: Any = None
) -> tuple[Floats, Masks]:
    """Checked scores ``[n]``, and for each slice of the problem the weights of both classes."""
    s, y = _flat(scores, "scores"), _flat(labels, "labels")
    if s.size == 0:
        raise ValueError("There are no scores to evaluate: pass at least one example.")
    check_scores(s)
    check_labels(y, s)
    w = np.ones_like(s) if weights is None else _flat(weights, "weights")
    check_weights(w, s)
    masks: Masks = {}
    for where in problem.slices:
        inside = w * members(problem, where, groups, s)
        masks[where] = (inside * (y == 1), inside * (y == 0))
    return s, masks


def group_column(problem: Specification, column: str, groups: Any, s: Floats) -> NDArray[Any]:
    """One value for each example, of the column that slices are picked by."""
    given = column_of(groups, column, {c for where in problem.slices for c, _ in where})
    array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    check_length(array, s, "groups")
    return array


def members(
    problem: Specification, where: Where, groups: Any, s: Floats, *, needed: bool = True
) -> NDArray[np.bool_]:
    """Which examples are in a slice; if some are ``needed``, none with a value is an error."""
    inside = np.ones(s.shape, dtype=bool)
    for column, value in where:
        array = group_column(problem, column, groups, s)
        matches = np.asarray(array == value)
        if needed and not np.any(matches):
            known = ", ".join(map(repr, list(dict.fromkeys(array.tolist()))[:5]))
            raise ValueError(f"No example has {column} = {value!r}; the column holds {known}.")
        inside &= matches
    return inside


def _flat(values: Any, name: str) -> Floats:
    """``[n]`` or ``[n, 1]`` as ``[n]``."""
    array = to_numpy(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one number per example, [n] or [n, 1]; got the shape {array.shape}. "
            "Evaluate several outputs one by one: scores[:, i]."
        )
    return array
