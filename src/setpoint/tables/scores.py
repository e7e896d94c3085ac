"""Which reader a path wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.csv_file import CsvSource
from setpoint.tables.labels import Classes, LabelCount
from setpoint.tables.parquet import SUFFIXES, ParquetSource, ShardSource, shards_in
from setpoint.tables.source import Chunk, Source, TableError, need_column
from setpoint.tables.values import need_groups, need_numbers


def open_table(path: Path) -> Source:
    """The table in a csv file, in a parquet file if the name says so, or in a folder of these.

    Raises:
        TableError: There is no such file, or it is not a table.
    """
    if path.is_dir():
        files = shards_in(path)
        if not files:
            problem = "is a folder without parquet files; name a csv or parquet file."
            raise TableError(path, problem)
        return ShardSource(path, files)
    if not path.exists():
        raise TableError(path, "no such file.")
    return ParquetSource(path) if path.suffix.lower() in SUFFIXES else CsvSource(path)


# ------------------------------------------------------------------------------------------------
# Scores and labels of a file, for certificates: no model, no torch.


@dataclass(frozen=True)
class Scores:
    """One score a row; labels (0 or 1) and groups (texts) where columns were named for them."""

    scores: NDArray[np.float64]
    labels: NDArray[np.int64] | None
    groups: NDArray[Any] | None
    classes: Classes | None

    def __len__(self) -> int:
        return len(self.scores)


def read_scores(
    source: Source,
    score: str,
    label: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    *,
    classes: Classes | None = None,
    one_will_do: bool = False,
) -> Scores:
    """The named columns, checked: scores finite, two classes, no group missing.

    The two classes are found in the file unless ``classes`` names them; with ``one_will_do`` all
    rows may be of one.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    for name, what in ((score, "--score"), (label, "--label"), (group, "--group")):
        if name is not None:
            need_column(source, name, what)
    wanted = dict.fromkeys(name for name in (score, label, group) if name is not None)
    chunks = list(source.chunks(wanted))
    if not chunks:
        raise TableError(source.path, "has a header and no rows.")
    scores = np.concatenate([need_numbers(source, c, score, "scores") for c in chunks])
    labels = groups = None
    if label is not None:
        if classes is None:
            count = LabelCount(source, label)
            for chunk in chunks:
                count.update(chunk)
            classes = count.classes(positive, one_will_do=one_will_do)
        labels = np.concatenate([classes.encode(source, c, label) for c in chunks])
    if group is not None:
        groups = np.concatenate([need_groups(source, c, group) for c in chunks])
    return Scores(scores, labels, groups, classes)


def read_texts(source: Source, name: str, option: str) -> NDArray[Any]:
    """One column as texts, none missing."""
    need_column(source, name, option)
    return np.concatenate([need_groups(source, chunk, name) for chunk in source.chunks([name])])


# ------------------------------------------------------------------------------------------------
# A part of a table's rows, as a table: what one of several processes reads.


@dataclass(frozen=True)
class RowShare:
    """The rows from ``start`` to ``stop`` of a table, counted from 0.

    Of a folder of parquet files only those with such rows are opened; of a single file, the rows
    before them are read and dropped.
    """

    source: Source
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.source.path

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""
        return self.source.names

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.Source`."""
        if self.start >= self.stop:
            return
        seen = 0
        chunks = self.source.chunks(columns)
        if isinstance(self.source, ShardSource):
            chunks = self.source.between(self.start, self.stop, columns)
        for chunk in chunks:
            if isinstance(self.source, ShardSource):
                seen = chunk.rows[0] - 1
            low, high = max(self.start - seen, 0), min(self.stop - seen, len(chunk))
            if low < high:
                found = {name: column[low:high] for name, column in chunk.columns.items()}
                yield Chunk(found, chunk.rows[low:high])
            seen += len(chunk)
            if seen >= self.stop:
                return
