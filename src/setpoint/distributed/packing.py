"""Columns of a batch as rows of bytes and back: one message carries them all, bit for bit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Column = Tensor | NDArray[Any]
Kind = str  # "tensor", "array" of numbers, or "text": any values that JSON knows, by number


@dataclass(frozen=True)
class Layout:
    """What each column looks like behind its first dimension, and how the batch is used."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    types: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    mode: str

    def to_json(self) -> str:
        """One line, the same on every rank that has the same layout."""
        return json.dumps([self.names, self.kinds, self.types, self.shapes, self.mode])

    @classmethod
    def of_json(cls, text: str) -> Layout:
        """What :meth:`to_json` wrote."""
        names, kinds, types, shapes, mode = json.loads(text)
        return cls(tuple(names), tuple(kinds), tuple(types), tuple(map(tuple, shapes)), mode)

    def __str__(self) -> str:
        listed = ", ".join(
            f"{name}: {type_} [n{''.join(f', {d}' for d in shape)}]"
            for name, type_, shape in zip(self.names, self.types, self.shapes, strict=True)
        )
        return f"{listed} ({self.mode})"


def layout_of(columns: Mapping[str, Column], mode: str) -> Layout:
    """The layout of these columns."""
    kinds = tuple(_kind(column) for column in columns.values())
    types, shapes = [], []
    for column, kind in zip(columns.values(), kinds, strict=True):
        types.append("text" if kind == "text" else str(column.dtype).removeprefix("torch."))
        shapes.append(tuple(column.shape[1:]))
    return Layout(tuple(columns), kinds, tuple(types), tuple(shapes), mode)


def pack(columns: Sequence[Column], layout: Layout) -> tuple[Tensor, bytes]:
    """Rows of bytes ``[n, width]``, and what the numbers of texts stand for."""
    parts, words = [], []
    for column, kind, type_, shape in zip(
        columns, layout.kinds, layout.types, layout.shapes, strict=True
    ):
        if kind == "text":
            listed, codes = _numbered(np.asarray(column))
            words.append(listed)
            part = torch.from_numpy(codes)
        else:
            part = column if isinstance(column, Tensor) else torch.from_numpy(np.asarray(column))
            part = part.detach().to("cpu", getattr(torch, type_))
        # A copy: without rows, contiguous() keeps strides that cannot be viewed as bytes.
        part = part.reshape(len(part), math.prod(shape)).clone(
            memory_format=torch.contiguous_format
        )
        parts.append(part.view(torch.uint8))
    return torch.cat(parts, 1), json.dumps(words).encode()


def unpack(rows: Tensor, layout: Layout) -> list[Column]:
    """The columns of :func:`pack`, on the processor; texts still by number."""
    found: list[Column] = []
    start = 0
    for kind, type_, shape in zip(layout.kinds, layout.types, layout.shapes, strict=True):
        dtype = torch.int64 if kind == "text" else getattr(torch, type_)
        width = dtype.itemsize * math.prod(shape)
        part = rows[:, start : start + width].contiguous().view(dtype)
        part = part.reshape(len(rows), *shape)
        found.append(part if kind == "tensor" else part.numpy())
        start += width
    return found


def spelled(codes: NDArray[Any], sizes: Sequence[int], words: Sequence[list[Any]]) -> NDArray[Any]:
    """Texts from their numbers: the rows of each rank by that rank's own list of words."""
    known: NDArray[Any] = np.empty(sum(map(len, words)), dtype=object)
    known[:] = [word for listed in words for word in listed]
    starts = np.cumsum([0, *map(len, words)])[:-1]
    texts: NDArray[Any] = known[codes + np.repeat(starts, sizes)]
    return texts


def _kind(column: Column) -> Kind:
    if isinstance(column, Tensor):
        return "tensor"
    return "array" if column.dtype.kind in "biuf" and column.dtype.itemsize <= 8 else "text"


def _numbered(column: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values of a column, in order of appearance, and the number of each row's."""
    places: dict[tuple[str, Any], int] = {}
    values = column.tolist()
    codes = [places.setdefault((type(value).__name__, value), len(places)) for value in values]
    return [value for _, value in places], np.array(codes, np.int64).reshape(column.shape)
