"""Decisions where every group has its own threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.certify.dtypes import exceeds
from setpoint.rates import Value


def decide_by_group(
    thresholds: dict[Value, float], column_name: str, dtype: str, scores: Any, groups: Any
) -> Any:
    """``score > threshold`` of each score's own group."""
    column = np.asarray(groups.detach().cpu() if hasattr(groups, "detach") else groups)
    if tuple(column.shape) != tuple(np.shape(scores)):
        raise ValueError(
            f"groups must have the shape of the scores, {tuple(np.shape(scores))}; "
            f"got {tuple(column.shape)}."
        )
    known = np.zeros(column.shape, bool)
    decided: Any = None
    for value, threshold in thresholds.items():
        inside = np.asarray(column == value)
        known |= inside
        mask = inside if not hasattr(scores, "detach") else _like(inside, scores)
        chosen = exceeds(scores, threshold, dtype) & mask
        decided = chosen if decided is None else decided | chosen
    if not known.all():
        stranger = column[~known].tolist()[0]
        known_ones = ", ".join(map(repr, thresholds))
        raise ValueError(
            f"No threshold for {column_name} = {stranger!r}: it was not certified. Decide such "
            f"rows by hand, or certify with rows of it; known are {known_ones}."
        )
    return decided


def _like(mask: Any, tensor: Any) -> Any:
    """A mask as a tensor beside ``tensor``, without importing torch."""
    return (tensor.detach().new_tensor(mask.astype(float)) > 0.5).reshape(tensor.shape)
