"""The first pass over a training file: classes, columns, and which row goes where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.columns import Summary, role_of
from setpoint.tables.encoder import Encoder, Matrix, column_of
from setpoint.tables.labels import MOST, MOST_CLASSES, Classes, LabelCount, Several
from setpoint.tables.source import Source, TableError, need_column, quoted
from setpoint.tables.values import need_groups

TRAIN, VALIDATION, CALIBRATION = 0, 1, 2
PARTS = ("train", "validation", "calibration")
STREAM = 0x5E7901  # numbers of our own: made-up data often come from default_rng(0) themselves


@dataclass(frozen=True)
class Shares:
    """How the rows are dealt out: each one by itself, by a number drawn from ``seed``.

    So a part is a random sample of the file whatever its order, the same on every pass, and the
    rows need not be counted first.
    """

    seed: int
    validation: float = 0.2
    calibration: float = 0.2

    def dealer(self, start: int = 0) -> Callable[[int], NDArray[np.int64]]:
        """A function that gives the parts of the next ``size`` rows, from row ``start`` on."""
        numbers = np.random.PCG64([self.seed, STREAM])
        draw = np.random.Generator(numbers.advance(start))  # a number a row
        edges = [1 - self.validation - self.calibration, 1 - self.calibration]
        return lambda size: np.searchsorted(edges, draw.random(size), side="right")


@dataclass(frozen=True)
class Survey:
    """What the first pass found."""

    classes: Classes | Several
    encoder: Encoder
    rows: int
    notes: tuple[str, ...]


def survey(
    source: Source,
    label: str,
    shares: Shares,
    *,
    positive: str | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    several: bool = False,
) -> Survey:
    """Read the file once and decide how each column is used.

    Raises:
        TableError: The label is missing or has not two values (two at least if it may have
            ``several``), or no column can be used.
    """
    for names, option in (([label], "--label"), (drop, "--drop"), (keep, "--keep")):
        for name in names:
            need_column(source, name, option)
    unreadable = tuple(getattr(source, "unreadable", ()))
    left = [n for n in source.names if n != label and n not in drop and n not in unreadable]
    labels = LabelCount(source, label, MOST_CLASSES if several else MOST)
    columns = [Summary(name) for name in left]
    deal, rows = shares.dealer(), 0
    for chunk in source.chunks([label, *left]):
        labels.update(chunk)
        training = deal(len(chunk)) == TRAIN
        for column in columns:
            column.update(chunk.columns[column.name], training, chunk.rows)
        rows += len(chunk)
    classes = labels.several() if several else labels.classes(positive)
    notes = [f"column {name!r} left out: neither numbers nor text." for name in unreadable]
    used = []
    for column in columns:
        if column.numeric and column.infinite is not None:
            problem = "the value is infinite; mend or remove the row, or --drop the column."
            raise TableError(source.path, problem, row=column.infinite, column=column.name)
        if column.odd is not None and column.name not in keep:
            problem = f"{quoted(column.odd.text)} is no number, and nearly all other values are; "
            problem += "mend it or leave it empty (--keep takes the column as text)."
            raise TableError(source.path, problem, row=column.odd.row, column=column.name)
        role, note = role_of(column, keep)
        notes += [note] if note else []
        used += [column_of(column, role)] if role != "drop" else []
    if not used:
        why = f" ({notes[0]})" if notes else ""
        raise TableError(source.path, f"no column is left to learn from{why}")
    return Survey(classes, Encoder(tuple(used)), rows, tuple(notes))


# ------------------------------------------------------------------------------------------------
# The second pass over a training file: features, labels and groups of each part.
#
# Features are float32 in memory while they are small, and in a file on disk above that, which the
# operating system keeps in memory only as long as there is room.


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
