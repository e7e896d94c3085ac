"""The rows of a file that is watched, as a monitor takes them: scores, labels, times, ids."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.certificates import Certificate, ClassCertificate, ThreeWayCertificate
from setpoint.certificates.times import read_times
from setpoint.cli.common import (
    LabelColumns,
    tell,
)
from setpoint.tables import (
    NO_ROWS,
    Chunk,
    TableError,
    TableSource,
    is_index,
    need_column,
    open_table,
    score_column,
    score_format,
)
from setpoint.tables.labels import LabelCount, LabelNames
from setpoint.tables.values import PLAIN, missing, numbers

AnyCertificate = Certificate | ThreeWayCertificate | ClassCertificate


def column_names(text: str | None) -> tuple[str, ...]:
    """The names in a list with commas; none if it was not given."""
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True)
class WatchedRows:
    """The columns of a file, as :meth:`Monitor.update` takes them."""

    columns: dict[str, Any]
    groups: dict[str, NDArray[Any]] | None
    features: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.identity.values())))

    @property
    def identity(self) -> dict[str, NDArray[Any]]:
        """What rows are known by: everything but labels."""
        names = ["times", "ids", "clusters"]
        found = {name: self.columns[name] for name in names if self.columns[name] is not None}
        scores = self.columns["scores"]
        if scores is not None:
            columns = [scores] if scores.ndim == 1 else scores.T
            found |= {f"scores {i}" if i else "scores": each for i, each in enumerate(columns)}
        return {**found, **{f"group {name}": each for name, each in (self.groups or {}).items()}}

    def part(self, rows: NDArray[Any]) -> dict[str, Any]:
        """Some of the rows, as arguments."""
        found = {
            name: None if column is None else column[rows] for name, column in self.columns.items()
        }
        for name, columns in (("groups", self.groups), ("features", self.features)):
            found[name] = None if not columns else {k: v[rows] for k, v in columns.items()}
        return found


def read_file(given: argparse.Namespace, certificate: AnyCertificate) -> WatchedRows:
    """The named columns of the file, checked; labels are known by their names in the certificate.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    source, features = open_table(given.file, given.decimal), column_names(given.features)
    scores, labels = _score_and_label_names(given)
    named = {
        "--time": given.time,
        "--group": given.group,
        "--id": given.id,
        "--clusters": given.clusters,
        "--label-weight": given.label_weight,
        "--amount": given.amount,
    }
    if _is_share(source, given.label_weight):
        del named["--label-weight"]
    wanted = [need_column(source, n, option) for option, n in named.items() if n is not None]
    for option, several in (("--score", scores), ("--label", labels), ("--features", features)):
        wanted += [need_column(source, name, option) for name in several]
    chunks = _chunks(source, wanted)
    texts = {
        name: None if column is None else np.concatenate([chunk.texts(column) for chunk in chunks])
        for name, column in (("ids", given.id), ("clusters", given.clusters))
    }
    columns = {
        "scores": _side_by_side([_joined(_scores(source, chunks, name)) for name in scores]),
        "labels": _side_by_side(
            [_labels(source, chunks, name, given.positive, certificate) for name in labels]
        ),
        "times": None if given.time is None else _times(chunks, given.time, given.dates),
        "label_shares": None if given.label_weight is None else _shares(source, chunks, given),
        "amounts": None if given.amount is None else _joined(_scores(source, chunks, given.amount)),
        **texts,
    }
    groups = None
    if given.group is not None:
        groups = {given.group: _joined([chunk.texts(given.group) for chunk in chunks])}
    extra = {name: _feature(source, chunks, name) for name in features}
    return WatchedRows(columns, groups, extra)


def read_scores_to_compare(given: argparse.Namespace) -> NDArray[Any]:
    """The scores of the file of --reference."""
    source = open_table(given.reference, given.decimal)
    return np.concatenate(_scores(source, _chunks(source, [given.score]), given.score))


def _score_and_label_names(given: argparse.Namespace) -> LabelColumns:
    """The columns of scores and of labels, one of each or as many as there are outputs."""
    several: LabelColumns | None = given.several
    if several is not None:
        return several
    both = (given.score, given.label)
    return LabelColumns(*([] if name is None else [name] for name in both))


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any] | None:
    """One column as it is, several as ``[n, k]``, None of none."""
    if not columns:
        return None
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _is_share(source: TableSource, text: str | None) -> bool:
    """Whether a text is a number between 0 and 1 and no column."""
    try:
        return text is not None and text not in source.names and 0 < float(text) <= 1
    except ValueError:
        return False


def read_columns(
    source: TableSource, time_column: str, without: Collection[str]
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """The times of a table, and its other columns as numbers or texts."""
    need_column(source, time_column, "--time")
    left_out = {time_column, *without, *source.unreadable}
    names = [name for name in source.names if name not in left_out and not is_index(name)]
    chunks = _chunks(source, [time_column, *names])
    columns = {}
    for name in names:
        column = np.concatenate([chunk.column(name) for chunk in chunks])
        known, _ = score_format(source, name, chunks)
        found, wrong = numbers(column, known)
        columns[name] = found if wrong is None else column
    return _times(chunks, time_column), columns


def _joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(columns)


def _chunks(source: TableSource, wanted: list[str]) -> list[Chunk]:
    chunks = list(source.chunks(wanted))
    if not chunks:
        raise TableError(source.path, NO_ROWS)
    return chunks


def _scores(source: TableSource, chunks: list[Chunk], name: str) -> list[NDArray[Any]]:
    need_column(source, name, "--score")
    known, notes = score_format(source, name, chunks)
    tell(notes)
    return [score_column(chunk, name, known) for chunk in chunks]


def _feature(source: TableSource, chunks: list[Chunk], name: str) -> NDArray[Any]:
    """A column of numbers, NaN where a cell is empty."""
    known, notes = score_format(source, name, chunks)
    tell(notes)
    columns = []
    for chunk in chunks:
        column = chunk.column(name)
        found, wrong = numbers(column, known)
        if wrong is not None:
            problem = (
                f"{column[wrong]!r:.40} is not {known.name}; --features are columns of numbers."
            )
            raise chunk.error(problem, wrong, name)
        columns.append(found)
    return _joined(columns)


def _labels(
    source: TableSource,
    chunks: list[Chunk],
    name: str,
    positive: str | None,
    certificate: AnyCertificate,
) -> NDArray[Any]:
    """0 and 1 (of several classes up to K - 1), NaN where the cell is empty."""
    absent = [_empty(chunk.column(name)) for chunk in chunks]
    labelled = [
        chunk.select(np.flatnonzero(~none).tolist())
        for chunk, none in zip(chunks, absent, strict=True)
    ]
    if not any(map(len, labelled)):
        return np.full(sum(map(len, chunks)), np.nan)
    if isinstance(certificate, ClassCertificate):
        classes = LabelNames(certificate.classes)
    else:
        count = LabelCount(source.path, name)
        for there in filter(len, labelled):
            count.update(there)
        known_as = certificate.label_names
        classes = count.two_classes(positive, known=known_as, one_will_do=True)
    found = []
    for none, there in zip(absent, labelled, strict=True):
        labels = np.full(len(none), np.nan)
        if len(there):
            labels[~none] = classes.encode(there, name)
        found.append(labels)
    return np.concatenate(found)


def _empty(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells have no label: missing ones, and texts without a letter (of parquet files)."""
    if column.dtype != object:
        return missing(column)
    blank = (text is None or not str(text).strip() for text in column)
    return np.fromiter(blank, bool, len(column))


def _times(chunks: list[Chunk], name: str, order: str | None = None) -> NDArray[Any]:
    """The times of all rows; read at once, so that every date is read in the same way."""
    columns = [chunk.column(name) for chunk in chunks]
    for chunk, column in zip(chunks, columns, strict=True):
        absent = np.flatnonzero(missing(column))
        if len(absent):
            problem = "the time is missing; fill it in or remove the row."
            raise chunk.error(problem, int(absent[0]), name)
    read = [numbers(column, PLAIN) for column in columns]
    if all(wrong is None for _, wrong in read):
        return read_times(_joined([values for values, _ in read]))
    texts = _joined([chunk.texts(name, "time") for chunk in chunks])
    return read_times(texts, name=f"column {quoted(name)}", order=order)


def _shares(source: TableSource, chunks: list[Chunk], given: argparse.Namespace) -> NDArray[Any]:
    """The shares with which labels were sampled; 1 where the cell is empty."""
    if _is_share(source, given.label_weight):
        return np.full(sum(map(len, chunks)), float(given.label_weight))
    found = []
    for chunk in chunks:
        shares, there = np.ones(len(chunk)), chunk.with_value(given.label_weight)
        known = ~missing(chunk.column(given.label_weight))
        if known.any():
            shares[known] = score_column(there, given.label_weight)
        found.append(shares)
    return np.concatenate(found)
