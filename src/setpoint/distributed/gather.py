"""The rows of all ranks on every rank, in the order of the ranks, however many each has.

Everything travels in one ``all_gather_object``. A rank whose columns cannot be sent sends None
instead: the error is raised on every rank, and no rank waits for a message that never comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    error, mine = None, None
    try:
        packed = {name: _packed(column) for name, column in columns.items()}
        mine = _Message(_count(columns), layout_of(columns, mode), mode, packed)
    except (TypeError, ValueError) as caught:
        error = caught
    found: list[Any] = [None] * workers(group)
    dist.all_gather_object(found, mine, group=group)
    if error is not None:
        raise error
    if None in found:
        raise ValueError(
            f"Rank {found.index(None)} got a batch that it cannot use (its own message says why), "
            f"so rank {rank_of(group)} stops as well."
        )
    messages: list[_Message] = found
    filled = [rank for rank, message in enumerate(messages) if message.count] or [0]
    first = messages[filled[0]]
    for rank in filled[1:]:
        if messages[rank].layout != first.layout:
            raise ValueError(
                "All ranks must call the criterion with the same kinds of columns and in the same "
                f"mode; rank {filled[0]} has {first.layout}, rank {rank} has "
                f"{messages[rank].layout}."
            )
    joined = {
        name: _joined([messages[rank].columns[name] for rank in filled]) for name in first.columns
    }
    return joined, [message.count for message in messages], first.mode


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


@dataclass(frozen=True)
class _Packed:
    """A tensor as bytes: numpy has no bfloat16, and tensors are slow to pickle."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    content: NDArray[np.uint8]

    def tensor(self) -> Tensor:
        return torch.from_numpy(self.content).view(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class _Message:
    """What a rank sends to the others."""

    count: int
    layout: str
    mode: str
    columns: dict[str, _Packed | NDArray[Any]]


def _column(values: Any) -> Column:
    return values.detach() if isinstance(values, Tensor) else np.asarray(values)


def _kind(column: Column) -> str:
    if isinstance(column, Tensor):
        return str(column.dtype).removeprefix("torch.")
    return f"array of {column.dtype}" if _is_number(column) else "text"


def _is_number(column: NDArray[Any]) -> bool:
    return column.dtype.kind in "biuf"


def _count(columns: Mapping[str, Column]) -> int:
    """The number of rows, the same in every column."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Every column needs one row per example; got {listed}.")
    return next(iter(lengths.values()), 0)


def _packed(column: Column) -> _Packed | NDArray[Any]:
    if isinstance(column, Tensor):
        flat = column.detach().cpu().reshape(-1).contiguous()
        return _Packed(column.dtype, tuple(column.shape), flat.view(torch.uint8).numpy())
    return column if _is_number(column) else column.astype(object)


def _joined(parts: list[Any]) -> Column:
    if isinstance(parts[0], _Packed):
        return torch.cat([part.tensor() for part in parts])
    return np.concatenate(parts)
