"""The rows of all ranks on every rank, in the order of the ranks, however many each has.

A rank whose columns cannot be sent says so instead of sending them: the error is raised on every
rank, and no rank waits for a message that never comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from setpoint.distributed.ranks import rank_of, values_of_ranks, workers

Column = Tensor | NDArray[Any]


def gather_rows(
    given: Mapping[str, Any], group: dist.ProcessGroup | None = None, mode: str = ""
) -> tuple[dict[str, Any], list[int], str]:
    """A batch with the rows of all ranks, on the CPU and bit for bit.

    Args:
        given: Tensors, arrays or lists with one row per example, dicts of these, or None, by name.
            Ranks without rows need not know the types of the others.
        group: The ranks; by default all.
        mode: What must be the same on all ranks that have rows, beside the columns.

    Returns:
        The batch, the number of rows of each rank, and their mode.

    Raises:
        ValueError: The columns of this rank or of another cannot be sent, or do not match.
    """
    if workers(group) == 1:
        columns = (v for v in given.values() if v is not None and not isinstance(v, Mapping))
        return dict(given), [len(next(columns, ()))], mode
    flat: dict[str, Any] = {}
    for name, values in given.items():
        named = values if isinstance(values, Mapping) else {"": values}
        flat |= {f"{name} {key}": value for key, value in named.items() if value is not None}
    found, sizes, agreed = _gather_columns(flat, group, mode)
    nested: dict[str, Any] = dict.fromkeys(given)
    for column, rows in found.items():
        name, key = column.split(" ", 1)
        nested[name] = {**(nested.get(name) or {}), key: rows} if key else rows
    return nested, sizes, agreed


def _gather_columns(
    columns: Mapping[str, Any], group: dist.ProcessGroup | None, mode: str
) -> tuple[dict[str, Column], list[int], str]:
    """The same for columns by name; see :func:`gather_rows`."""
    mine: dict[str, Column] = {}
    error, count = None, -1
    try:
        mine = {name: _as_column(values) for name, values in columns.items()}
        count = _row_count(mine)
    except (TypeError, ValueError) as caught:
        error = caught
    ready = {} if error else {name: _sendable(column) for name, column in mine.items()}
    found = values_of_ranks((count, layout_of(mine, mode), mode, ready), group)
    sizes: list[int] = [one[0] for one in found]
    if error is not None:
        raise error
    if -1 in sizes:
        raise ValueError(
            f"Rank {sizes.index(-1)} got a batch that it cannot use (its own message says why), "
            f"so rank {rank_of(group)} stops as well."
        )
    filled = [rank for rank, size in enumerate(sizes) if size] or [0]
    _, layout, agreed, first = found[filled[0]]
    for rank in filled[1:]:
        if found[rank][1] != layout:
            raise ValueError(
                "All ranks must call the criterion with the same kinds of columns and in the same "
                f"mode; rank {filled[0]} has {layout}, rank {rank} has {found[rank][1]}."
            )
    parts = {name: [found[rank][3][name] for rank in filled] for name in first}
    return {name: _column_from(columns) for name, columns in parts.items()}, sizes, agreed


def layout_of(columns: Mapping[str, Column], mode: str) -> str:
    """Name, type and shape of each column behind its first dimension, and the mode, as a text.

    Examples:
        >>> layout_of({"scores": torch.zeros(5), "groups": np.array(["a"])}, "training")
        'scores: float32 [n], groups: text [n] (training)'
    """
    listed = ", ".join(
        f"{name.strip()}: {_kind_of(column)} [n{''.join(f', {d}' for d in column.shape[1:])}]"
        for name, column in columns.items()
    )
    return f"{listed} ({mode})"


def _as_column(values: Any) -> Column:
    """A tensor on the CPU, an array of numbers, or one of objects."""
    if isinstance(values, Tensor):
        return values.detach().cpu()
    column = np.asarray(values)
    return column if column.dtype.kind in "biuf" else column.astype(object)


def _sendable(column: Column) -> tuple[torch.dtype | None, NDArray[Any]]:
    """An array, whose pickle is made in a tenth of the time of a tensor's, and its torch type."""
    if not isinstance(column, Tensor):
        return None, column
    # numpy has no bfloat16: its bits go as whole numbers
    bits = column.view(torch.int16) if column.dtype == torch.bfloat16 else column
    return column.dtype, bits.numpy()


def _kind_of(column: Column) -> str:
    if isinstance(column, Tensor):
        return str(column.dtype).removeprefix("torch.")
    return "text" if column.dtype.kind not in "biuf" else f"array of {column.dtype}"


def _row_count(columns: Mapping[str, Column]) -> int:
    """The number of rows, the same in every column."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Every column needs one row per example; got {listed}.")
    return next(iter(lengths.values()), 0)


def _column_from(parts: list[tuple[torch.dtype | None, NDArray[Any]]]) -> Column:
    """One column from what :func:`_sendable` made of its parts."""
    dtype, rows = parts[0][0], np.concatenate([array for _, array in parts])
    return rows if dtype is None else torch.from_numpy(rows).view(dtype)
