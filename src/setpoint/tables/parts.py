"""The second pass over a training file: features, labels and groups of each part.

Features are float32 in memory while they are small, and in a file on disk above that, which the
operating system keeps in memory only as long as there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.encoder import Encoder, Matrix
from setpoint.tables.errors import TableError
from setpoint.tables.labels import Classes
from setpoint.tables.several import Several
from setpoint.tables.source import Source, need_column
from setpoint.tables.survey import PARTS
from setpoint.tables.values import need_groups

IN_MEMORY = 2**30  # bytes of features


@dataclass(frozen=True)
class Part:
    """Examples in the order of the file: features [n, d], labels [n], groups [n] or None."""

    x: Matrix
    y: NDArray[np.int64]
    groups: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.y)


@contextmanager
def read_parts(
    source: Source,
    label: str,
    classes: Classes | Several,
    encoder: Encoder,
    deal: Callable[[int], NDArray[np.int64]],
    rows: int,
    group: str | None = None,
    parts: int = len(PARTS),
) -> Iterator[list[Part]]:
    """Every part of a file of ``rows`` rows; scratch space is gone when the context ends."""
    for name, option in ((label, "--label"), (group, "--group")):
        if name is not None:
            need_column(source, name, option)
    with TemporaryDirectory(prefix="setpoint-") as scratch:
        stores = [_Store(scratch, f"{i}", encoder.width, rows) for i in range(parts)]
        also = [label] if group is None else [label, group]
        for chunk, features in encoder.chunks(source, also):
            labels = classes.encode(source, chunk, label)
            groups = None if group is None else need_groups(source, chunk, group)
            where = deal(len(chunk))
            for number, store in enumerate(stores):
                mine = where == number
                store.add(features[mine], labels[mine], None if groups is None else groups[mine])
        yield [store.part() for store in stores]


def read_all(
    source: Source,
    label: str,
    classes: Classes | Several,
    encoder: Encoder,
    group: str | None = None,
) -> Any:
    """One part with every row of a file, such as a test file; a context like the above."""
    rows = count_rows(source, label)

    def deal(size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    return read_parts(source, label, classes, encoder, deal, rows, group, parts=1)


def count_rows(source: Source, label: str) -> int:
    """How many rows a table has."""
    rows = sum(len(chunk) for chunk in source.chunks([need_column(source, label, "--label")]))
    if not rows:
        raise TableError(source.path, "has a header and no rows.")
    return rows


class _Store:
    """Grows by chunks to at most ``most`` rows, none of which is copied again."""

    def __init__(self, folder: str, name: str, width: int, most: int) -> None:
        self._count = 0
        shape = (max(most, 1), width)
        if 4 * most * width <= IN_MEMORY:
            self._x: Matrix = np.empty(shape, np.float32)  # pages that are not written cost nothing
        else:
            self._x = np.memmap(Path(folder) / name, np.float32, "w+", shape=shape)
        self._y: list[NDArray[np.int64]] = []
        self._groups: list[NDArray[Any]] = []

    def add(self, x: Matrix, y: NDArray[np.int64], groups: NDArray[Any] | None) -> None:
        self._x[self._count : self._count + len(x)] = x
        self._count += len(x)
        self._y.append(y)
        if groups is not None:
            self._groups.append(groups)

    def part(self) -> Part:
        y = np.concatenate(self._y) if self._y else np.empty(0, np.int64)
        groups = np.concatenate(self._groups) if self._groups else None
        return Part(self._x[: self._count], y, groups)
