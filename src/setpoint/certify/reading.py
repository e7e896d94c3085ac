"""Scores, labels, groups and clusters of numpy, torch or plain lists, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_labels, check_length, column_of
from setpoint.certify.dtypes import read_scores
from setpoint.certify.samples import Bools, Sample
from setpoint.rates import Where


def read_sample(scores: Any, labels: Any, groups: Any, wheres: tuple[Where, ...]) -> Sample:
    """A checked sample with the slices ``wheres``."""
    s, dtype = read_scores(scores)
    y = None if labels is None else read_labels(labels, s)
    return Sample(s, y, read_slices(groups, wheres, s), dtype)


def read_slices(
    groups: Any, wheres: tuple[Where, ...], scores: NDArray[Any], *, empty: bool = False
) -> dict[Where, Bools]:
    """Who belongs to each slice; nobody is an error unless slices may be ``empty``."""
    columns = {column for where in wheres for column, _ in where}
    found = {where: _slice(where, groups, columns, scores) for where in wheres if where}
    for where, inside in found.items():
        if not (empty or inside.any()):
            text = " and ".join(f"{column} = {value!r}" for column, value in where)
            raise ValueError(f"No example has {text}: look for it in the data, or leave it out.")
    return found


def read_labels(labels: Any, scores: NDArray[Any]) -> Bools:
    """Labels as booleans."""
    array = np.asarray(labels.detach().cpu() if hasattr(labels, "detach") else labels)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            first = array.reshape(-1)[:1].tolist()[0]
            raise TypeError(
                f"labels must be 0 or 1; got {first!r:.40}. Say which is the positive one: "
                f"numpy.asarray(labels) == {first!r:.40}, say."
            ) from None
    if array.dtype.kind == "b":
        check_length(array, scores, "labels")
        return array
    check_labels(array, scores)
    return np.asarray(array == 1)


def read_column(column: Any, scores: NDArray[Any], name: str = "groups") -> NDArray[Any]:
    """One value for each score."""
    array = np.asarray(column.detach().cpu() if hasattr(column, "detach") else column)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    check_length(array, scores, name)
    return array


def _slice(where: Where, groups: Any, columns: set[str], scores: NDArray[Any]) -> Bools:
    inside = np.ones(len(scores), bool)
    for column, value in where:
        inside &= np.asarray(read_column(column_of(groups, column, columns), scores) == value)
    return inside
