"""The rows of all ranks on every rank, in the order of the ranks, however many each has.

Two messages: how many rows each rank has and what they look like, then the rows. A rank whose
columns cannot be sent says so in the first: the error is raised on every rank, and no rank waits
for a message that never comes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from setpoint.distributed.ranks import rank_of, workers

Column = Tensor | NDArray[Any]


def gather_rows(
    given: Mapping[str, Any], group: dist.ProcessGroup | None = None, mode: str = ""
) -> tuple[dict[str, Any], list[int], str]:
    """A batch with the rows of all ranks: :func:`gather_columns` for nested columns.

    Args:
        given: Tensors, arrays or lists with one row per example, dicts of these, or None.
        group: The ranks; by default all.
        mode: What must be the same on all ranks that have rows.

    Returns:
        The batch, the number of rows of each rank, and their mode.
    """
    columns = batch_columns(given)
    if workers(group) == 1:
        return dict(given), [len(next(iter(columns.values()), ()))], mode
    found, sizes, agreed = gather_columns(columns, group, mode)
    nested: dict[str, Any] = dict.fromkeys(given)
    for column, rows in found.items():
        name, key = column.split(" ", 1)
        nested[name] = {**(nested.get(name) or {}), key: rows} if key else rows
    return nested, sizes, agreed


def batch_columns(given: Mapping[str, Any]) -> dict[str, Column]:
    """The columns of a batch by name, those inside dicts as ``"name key"``; None is left out."""
    columns: dict[str, Column] = {}
    for name, values in given.items():
        named = values if isinstance(values, Mapping) else {"": values}
        columns |= {f"{name} {key}": _column(v) for key, v in named.items() if v is not None}
    return columns


def gather_columns(
    columns: Mapping[str, Column], group: dist.ProcessGroup | None = None, mode: str = ""
) -> tuple[dict[str, Column], list[int], str]:
    """Each column with the rows of all ranks, on the CPU and bit for bit.

    Args:
        columns: Tensors or arrays with one row per example, by name. Ranks without rows need not
            know the types of the others.
        group: The ranks; by default all.
        mode: What must be the same on all ranks that have rows, beside the columns.

    Returns:
        The columns, the number of rows of each rank, and their mode.

    Raises:
        ValueError: The columns of this rank or of another cannot be sent, or do not match.
    """
    error, count, digest = None, -1, 0
    try:
        count = _count(columns)
        digest = _digest(layout_of(columns, mode)) if _are_numbers(columns) else 0
    except (TypeError, ValueError) as caught:
        error = caught
    heads = _all_gather(torch.tensor([[count, digest]]), group)
    sizes: list[int] = heads[:, 0].tolist()
    if digest and bool((heads[:, 1] == digest).all()):
        return _gather_bytes(columns, sizes, group), sizes, mode
    if error is not None:
        raise error
    if -1 in sizes:
        raise ValueError(
            f"Rank {sizes.index(-1)} got a batch that it cannot use (its own message says why), "
            f"so rank {rank_of(group)} stops as well."
        )
    joined, agreed = _gather_objects(columns, sizes, group, mode)
    return joined, sizes, agreed


def _gather_bytes(
    columns: Mapping[str, Column], sizes: list[int], group: dist.ProcessGroup | None
) -> dict[str, Column]:
    """Numbers of the same layout on all ranks: rows of bytes, padded to the longest share."""
    parts = [_as_bytes(column) for column in columns.values()]
    rows, most = torch.cat(parts, 1), max(sizes)
    padded = torch.zeros(most, rows.shape[1], dtype=torch.uint8)
    padded[: len(rows)] = rows
    found = _all_gather(padded, group) if padded.numel() else padded
    found = torch.cat([found[i * most : i * most + size] for i, size in enumerate(sizes)])
    joined: dict[str, Column] = {}
    start = 0
    for (name, column), part in zip(columns.items(), parts, strict=True):
        own = _as_bytes(found[:, start : start + part.shape[1]])
        start += part.shape[1]
        whole = own.view(_dtype(column)).reshape(len(found), *column.shape[1:])
        joined[name] = whole if isinstance(column, Tensor) else whole.numpy()
    return joined


def _gather_objects(
    columns: Mapping[str, Column], sizes: list[int], group: dist.ProcessGroup | None, mode: str
) -> tuple[dict[str, Column], str]:
    """Columns of any kind, such as texts; ranks without rows take the layout of the others."""
    found: list[Any] = [None] * len(sizes)
    dist.all_gather_object(found, (layout_of(columns, mode), mode, _arrays(columns)), group=group)
    filled = [rank for rank, size in enumerate(sizes) if size] or [0]
    layout, agreed, first = found[filled[0]]
    for rank in filled[1:]:
        if found[rank][0] != layout:
            raise ValueError(
                "All ranks must call the criterion with the same kinds of columns and in the same "
                f"mode; rank {filled[0]} has {layout}, rank {rank} has {found[rank][0]}."
            )
    parts = {name: [found[rank][2][name] for rank in filled] for name in first}
    return {name: _joined(part) for name, part in parts.items()}, agreed


def layout_of(columns: Mapping[str, Column], mode: str) -> str:
    """Name, type and shape of each column behind its first dimension, and the mode, as a text.

    Examples:
        >>> layout_of({"scores": torch.zeros(5), "groups": np.array(["a"])}, "training")
        'scores: float32 [n], groups: text [n] (training)'
    """
    listed = ", ".join(
        f"{name.strip()}: {_kind(column)} [n{''.join(f', {d}' for d in column.shape[1:])}]"
        for name, column in columns.items()
    )
    return f"{listed} ({mode})"


def _column(values: Any) -> Column:
    return values.detach() if isinstance(values, Tensor) else np.asarray(values)


def _kind(column: Column) -> str:
    if isinstance(column, Tensor):
        return str(column.dtype).removeprefix("torch.")
    return f"array of {column.dtype}" if _is_number(column) else "text"


def _is_number(column: Column) -> bool:
    if isinstance(column, Tensor):
        return True
    return column.dtype.kind in "biuf" and column.dtype.itemsize <= 8


def _are_numbers(columns: Mapping[str, Column]) -> bool:
    return bool(columns) and all(map(_is_number, columns.values()))


def _count(columns: Mapping[str, Column]) -> int:
    """The number of rows, the same in every column."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Every column needs one row per example; got {listed}.")
    return next(iter(lengths.values()), 0)


def _digest(layout: str) -> int:
    """A number that differs between layouts, never 0."""
    return 1 + int.from_bytes(blake2b(layout.encode(), digest_size=7).digest(), "big")


def _all_gather(mine: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """The rows of all ranks, as many on each, one rank after the other."""
    own = mine.to("cuda" if dist.get_backend(group) == "nccl" else "cpu")  # nccl: GPU only
    found = own.new_empty(workers(group) * len(own), *own.shape[1:])
    dist.all_gather_single(found, own, group=group)
    return found.cpu()


def _dtype(column: Column) -> torch.dtype:
    return column.dtype if isinstance(column, Tensor) else torch.from_numpy(column[:0]).dtype


def _as_bytes(column: Column) -> Tensor:
    """A column as rows of bytes, ``[n, width]``."""
    part = column if isinstance(column, Tensor) else torch.from_numpy(np.asarray(column))
    flat = part.detach().cpu().reshape(len(part), math.prod(part.shape[1:]))
    # A copy: without rows, contiguous() keeps strides that cannot be viewed as bytes.
    return flat.clone(memory_format=torch.contiguous_format).view(torch.uint8)


def _arrays(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Columns that can be pickled: tensors with their bytes, since numpy has no bfloat16."""
    return {
        name: (column.dtype, tuple(column.shape[1:]), _as_bytes(column).numpy())
        if isinstance(column, Tensor)
        else column
        if _is_number(column)
        else column.astype(object)
        for name, column in columns.items()
    }


def _joined(parts: list[Any]) -> Column:
    """One column from the parts of :func:`_arrays`."""
    if not isinstance(parts[0], tuple):
        return np.concatenate(parts)
    dtype, shape, _ = parts[0]
    rows = torch.from_numpy(np.concatenate([content for _, _, content in parts]))
    return rows.view(dtype).reshape(len(rows), *shape)
