"""Group columns: one of them or a dict by name, arrays or tensors, cut to some of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor


def columns_of(groups: Any, count: int) -> Any:
    """Columns that rows can be taken from, each checked to have one value an example."""
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {name: columns_of(column, count) for name, column in groups.items()}
    column = groups if isinstance(groups, Tensor) else np.asarray(groups)
    if column.shape != (count,):
        shape = tuple(column.shape)
        raise ValueError(f"groups must have one value an example, ({count},); got {shape}.")
    return column


def of_rows(groups: Any, rows: Any) -> Any:
    """The values of some rows, given as an array or a tensor of indices."""
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {name: of_rows(column, rows) for name, column in groups.items()}
    if isinstance(groups, Tensor):
        return groups[rows.to(groups.device) if isinstance(rows, Tensor) else rows]
    return groups[rows.cpu().numpy() if isinstance(rows, Tensor) else rows]
