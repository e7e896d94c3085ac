"""Opening a table, and its scores and labels as arrays for certificates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.csv_file import CsvSource
from setpoint.tables.labels import LabelCount, LabelNames
from setpoint.tables.parquet import SUFFIXES, ParquetSource
from setpoint.tables.source import NO_ROWS, Codes, FloatColumn, TableError, TableSource, need_column


def open_table(path: Path) -> TableSource:
    """The table in a csv file, in a parquet file if the name says so, or in a folder of these.

    Raises:
        TableError: There is no such file, or it is not a table.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
        if not files:
            problem = "is a folder without parquet files; name a csv or parquet file."
            raise TableError(path, problem)
        return ParquetSource(path, files)
    if not path.exists():
        raise TableError(path, "no such file.")
    return ParquetSource(path, [path]) if path.suffix.lower() in SUFFIXES else CsvSource(path)


@dataclass(frozen=True)
class Scores:
    """One score per row; labels (0 or 1), groups and clusters (texts) if columns were named."""

    scores: FloatColumn
    labels: Codes | None
    groups: NDArray[Any] | None
    clusters: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.scores)


def read_scores(
    source: TableSource,
    score: str,
    label: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    *,
    clusters: str | None = None,
    classes: LabelNames | None = None,
    one_will_do: bool = False,
) -> Scores:
    """The named columns, checked: scores finite, two classes, no group or cluster missing.

    Args:
        source: The table.
        score: The column of scores.
        label: The column of labels.
        group: The column of groups.
        positive: The positive label, where its name does not tell.
        clusters: The column that says which rows belong together.
        classes: The two labels, if they are known; by default they are found in the file.
        one_will_do: Whether all rows may be of one class.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    named = {"--score": score, "--label": label, "--group": group, "--clusters": clusters}
    wanted = [need_column(source, n, option) for option, n in named.items() if n is not None]
    chunks = list(source.chunks(dict.fromkeys(wanted)))
    if not chunks:
        raise TableError(source.path, NO_ROWS)
    scores = np.concatenate([chunk.scores(score) for chunk in chunks])
    labels = None
    if label is not None:
        if classes is None:
            count = LabelCount(source.path, label)
            for chunk in chunks:
                count.update(chunk)
            classes = count.two_classes(positive, one_will_do=one_will_do)
        labels = np.concatenate([classes.encode(chunk, label) for chunk in chunks])
    groups, members = (
        None if name is None else np.concatenate([chunk.texts(name) for chunk in chunks])
        for name in (group, clusters)
    )
    return Scores(scores, labels, groups, members)
