"""A file to learn from, in two passes: what its columns hold, then the rows of each part.

The survey finds classes and columns; :func:`read_parts` then reads features, labels and groups of
the training, validation and calibration part. Features are float32, in memory while they are small
and in a temporary file above that, which the operating system keeps in memory while there is room.
Rows without a label are left out of every part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.tables.features import Category, ColumnSummary, Encoder, Features, Number
from setpoint.tables.labels import MOST_CLASSES, MOST_LABELS, LabelCount, LabelNames
from setpoint.tables.scores import unlabelled_note
from setpoint.tables.table import NO_ROWS, TableError, TableSource, is_index, need_column
from setpoint.tables.values import Codes, missing

PART_NAMES = ("train", "validation", "calibration")
IN_MEMORY = 2**30  # bytes of features
_STREAM = 0x5E7901  # made-up data often come from default_rng(seed) themselves

Deal = Callable[[int], Codes]
"""Gives the parts (places in ``PART_NAMES``) of the next rows of a file, given how many."""


@dataclass(frozen=True)
class Shares:
    """How rows are divided into parts: each one by itself, by a number drawn from ``seed``.

    So a part is a random sample of the file whatever its order, the same on every pass, and the
    rows need not be counted first.
    """

    seed: int
    validation: float = 0.2
    calibration: float = 0.2

    def dealer(self, start: int = 0) -> Deal:
        """The parts of the rows from row ``start`` on."""
        bits = np.random.PCG64([self.seed, _STREAM])
        draw = np.random.Generator(bits.advance(start))  # one number per row
        edges = [1 - self.validation - self.calibration, 1 - self.calibration]
        return lambda size: np.searchsorted(edges, draw.random(size), side="right")

    def known(self, *parts: str) -> tuple[None, None]:
        """Clusters and times of rows: there are none."""
        return None, None


@dataclass(frozen=True)
class DealtRows:
    """Rows of a file that were divided beforehand.

    Args:
        parts: The place of each row's part in :data:`PART_NAMES`; -1: used by nobody.
        labelled: Whether a row has a label; rows without are read by no part.
        clusters: The number of each row's cluster, if known.
        times: When it was measured, if known.
    """

    parts: Codes
    labelled: NDArray[np.bool_]
    clusters: Codes | None = None
    times: NDArray[Any] | None = None

    def dealer(self, start: int = 0) -> Deal:
        """The parts of the rows from row ``start`` on."""
        place = start

        def deal(size: int) -> Codes:
            nonlocal place
            place += size
            return self.parts[place - size : place]

        return deal

    def known(self, *parts: str) -> tuple[Codes | None, NDArray[Any] | None]:
        """Clusters and times of the rows of these parts, part by part; None if unknown."""
        places = [self.labelled & (self.parts == PART_NAMES.index(part)) for part in parts]
        rows = np.concatenate([np.flatnonzero(place) for place in places])
        clusters, times = self.clusters, self.times
        return None if clusters is None else clusters[rows], None if times is None else times[rows]


@dataclass(frozen=True)
class Survey:
    """What the first pass found."""

    classes: LabelNames
    encoder: Encoder
    rows: int
    notes: tuple[str, ...]


def survey(
    source: TableSource,
    label: str,
    shares: Shares | DealtRows,
    *,
    positive: str | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    several: bool = False,
) -> Survey:
    """Read the file once and decide how each column is used.

    Args:
        source: The table.
        label: The column of labels.
        shares: Which rows are for training: means and scales are theirs.
        positive: The positive label, where its name does not tell.
        drop: Columns not to learn from.
        keep: Columns to use although they look like identifiers.
        several: Whether there may be more than two classes.

    Raises:
        TableError: There are too few or too many classes, or no column can be used.
    """
    for names, option in (([label], "--label"), (drop, "--drop"), (keep, "--keep")):
        for name in names:
            need_column(source, name, option)
    indices = [n for n in source.names if is_index(n) and n not in (label, *drop, *keep)]
    unused = {label, *drop, *source.unreadable, *indices}
    left = [n for n in source.names if n not in unused]
    labels = LabelCount(source.path, label, MOST_CLASSES if several else MOST_LABELS)
    columns = [ColumnSummary(name, source) for name in left]
    unlabelled: list[int] = []
    deal, rows = shares.dealer(), 0
    for chunk in source.chunks([label, *left]):
        rows += len(chunk)
        where, absent = deal(len(chunk)), missing(chunk.column(label))
        unlabelled += chunk.rows_without(label)
        chunk = chunk.with_value(label)
        labels.update(chunk)
        for column in columns:
            column.update(chunk.column(column.name), where[~absent] == 0, chunk.rows)
    classes = labels.all_classes() if several else labels.two_classes(positive)
    notes = unlabelled_note(label, len(unlabelled), *unlabelled[:1])
    lost = [name for name in source.unreadable if name not in drop]
    notes += [f"column {quoted(name)} left out: neither numbers, texts nor dates." for name in lost]
    notes += [f"column {quoted(name)} left out: an index; --keep uses it." for name in indices]
    used: list[Number | Category] = []
    for column in columns:
        column.check(source, keep)
        encoded, told = column.encoded(keep)
        notes += told
        used += [] if encoded is None else [encoded]
    if not used:
        why = f" ({notes[0]})" if notes else ""
        raise TableError(source.path, f"no column is left to learn from{why}")
    return Survey(classes, Encoder(tuple(used)), rows, tuple(notes))


@dataclass(frozen=True)
class TablePart:
    """Examples in the order of the file: features [n, d], labels [n], groups [n] or None."""

    x: Features
    y: Codes
    groups: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def joined(cls, parts: Sequence[TablePart]) -> TablePart:
        """The rows of several parts, in memory."""
        groups = [part.groups for part in parts if part.groups is not None]
        return cls(
            np.concatenate([part.x for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate(groups) if groups else None,
        )


@contextmanager
def read_parts(
    source: TableSource,
    label: str,
    classes: LabelNames,
    encoder: Encoder,
    deal: Deal,
    rows: int,
    group: str | None = None,
    parts: int = len(PART_NAMES),
) -> Iterator[list[TablePart]]:
    """Every part of a file of ``rows`` rows; temporary files are gone when the context ends."""
    also = [need_column(source, label, "--label")]
    if group is not None:
        also.append(need_column(source, group, "--group"))
    encoder.check(source)
    stores = [_Store(encoder.width, rows) for _ in range(parts)]
    for chunk in source.chunks([*encoder.names, *also]):
        where = deal(len(chunk))[~missing(chunk.column(label))]
        chunk = chunk.with_value(label)
        features, labels = encoder.encode(chunk, source), classes.encode(chunk, label)
        groups = None if group is None else chunk.texts(group)
        for number, store in enumerate(stores):
            mine = where == number
            store.add(features[mine], labels[mine], None if groups is None else groups[mine])
    yield [store.part() for store in stores]


def read_all(
    source: TableSource, label: str, classes: LabelNames, encoder: Encoder, group: str | None = None
) -> AbstractContextManager[list[TablePart]]:
    """One part with every row of a file, such as a test file; see :func:`read_parts`."""

    def deal(size: int) -> Codes:
        return np.zeros(size, np.int64)

    rows = count_rows(source, label)
    return read_parts(source, label, classes, encoder, deal, rows, group, parts=1)


def count_rows(source: TableSource, label: str) -> int:
    """How many rows a table has; TableError if none."""
    rows = sum(len(chunk) for chunk in source.chunks([need_column(source, label, "--label")]))
    if not rows:
        raise TableError(source.path, NO_ROWS)
    return rows


class _Store:
    """Grows by chunks to at most ``most`` rows, none of which is copied again."""

    def __init__(self, width: int, most: int) -> None:
        self._count = 0
        shape = (max(most, 1), width)
        if 4 * most * width <= IN_MEMORY:
            self._x: Features = np.empty(shape, np.float32)  # unwritten pages cost nothing
        else:
            with TemporaryFile(prefix="setpoint-") as file:  # without a name: never left behind
                self._x = np.memmap(file, np.float32, "w+", shape=shape)
        self._y: list[Codes] = []
        self._groups: list[NDArray[Any]] = []

    def add(self, x: Features, y: Codes, groups: NDArray[Any] | None) -> None:
        self._x[self._count : self._count + len(x)] = x
        self._count += len(x)
        self._y.append(y)
        if groups is not None:
            self._groups.append(groups)

    def part(self) -> TablePart:
        y = np.concatenate(self._y) if self._y else np.empty(0, np.int64)
        groups = np.concatenate(self._groups) if self._groups else None
        return TablePart(self._x[: self._count], y, groups)
