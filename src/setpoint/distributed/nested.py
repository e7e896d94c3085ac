"""Rows of all ranks of whatever a batch is made of: columns, dicts of columns, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.everyone import everyone
from setpoint.distributed.packing import Column
from setpoint.distributed.ranks import workers


def rows_of_all(
    given: Mapping[str, Any], group: dist.ProcessGroup | None = None, mode: str = ""
) -> tuple[dict[str, Any], list[int], str]:
    """The same things with the rows of all ranks; see :func:`everyone`.

    Args:
        given: Tensors, arrays or lists with a row an example, dicts of these, or None.
        group: The ranks; by default all.
        mode: What must be the same on all ranks that have rows.
    """
    columns = columns_of(given)
    if workers(group) == 1:
        return dict(given), [len(next(iter(columns.values()), ()))], mode
    found, sizes, agreed = everyone(columns, group, mode)
    nested: dict[str, Any] = dict.fromkeys(given)
    for column, rows in found.items():
        name, key = column.split(" ", 1)
        nested[name] = {**(nested.get(name) or {}), key: rows} if key else rows
    return nested, sizes, agreed


def columns_of(given: Mapping[str, Any]) -> dict[str, Column]:
    """The columns of a batch by name, those inside of dicts too; what is None is left out."""
    columns: dict[str, Column] = {}
    for name, values in given.items():
        named = values if isinstance(values, Mapping) else {"": values}
        columns |= {f"{name} {key}": _column(v) for key, v in named.items() if v is not None}
    return columns


def _column(values: Any) -> Column:
    return values.detach() if isinstance(values, Tensor) else np.asarray(values)
