"""Opening a table, and its scores and labels as arrays for certificates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural, quoted
from setpoint.tables.csv_file import CsvSource
from setpoint.tables.decimal_marks import DECIMALS, column_format, format_note
from setpoint.tables.labels import LabelCount, LabelNames
from setpoint.tables.streams import Opener, opener_of
from setpoint.tables.table import (
    FEATHER,
    NO_ROWS,
    PARQUET,
    Chunk,
    TableError,
    TableSource,
    need_column,
)
from setpoint.tables.values import (
    DATE,
    PLAIN,
    Codes,
    FloatColumn,
    NumberFormat,
    date_format,
    number_of,
    numbers,
)


def open_table(path: Path, decimal: str | None = None) -> TableSource:
    """The table in a file, in a folder of parquet files, or from standard input (``-``).

    A file is parquet or feather if its name or its first bytes say so, and csv otherwise; csv may
    be compressed (gzip, zstd).

    Args:
        path: Where it is.
        decimal: ``"point"`` or ``"comma"``: what a mark is where numbers such as 1.270 do not show
            it; by default the whole file is asked.

    Raises:
        TableError: There is no such file, or it is not a table.
    """
    source = _opened(path)
    source.decimal = None if decimal is None else DECIMALS[decimal]
    return source


def _opened(path: Path) -> TableSource:
    if path.is_dir():
        files = sorted(filter(_is_part, path.rglob("*")))
        if not files:
            problem = "is a folder without parquet files; name a csv or parquet file."
            raise TableError(path, problem)
        return _arrow(path, files)
    suffix, opener = path.suffix.lower(), opener_of(path)
    with opener() as file:
        start = file.read(6)
    if suffix in PARQUET or start[:4] == b"PAR1":
        return _arrow(path, [path], opener)
    if suffix in FEATHER or start == b"ARROW1":
        return _arrow(path, [path], opener, feather=True)
    return CsvSource(path, opener)


def _is_part(file: Path) -> bool:
    """Whether a file of a folder is part of its table: names that begin with _ or . are not."""
    return file.suffix.lower() in PARQUET and file.is_file() and file.name[0] not in "._"


def _arrow(
    path: Path, files: list[Path], opener: Opener | None = None, *, feather: bool = False
) -> TableSource:
    from setpoint.tables.arrow_file import ArrowSource

    return ArrowSource(path, [(file, opener or opener_of(file)) for file in files], feather=feather)


@dataclass(frozen=True)
class Scores:
    """One score per row; labels (0 or 1), groups and clusters (texts) if columns were named.

    Labels are NaN in rows that have none. ``notes`` tell how many these are, and what was read in
    an unusual format, in sentences.
    """

    scores: FloatColumn
    labels: Codes | FloatColumn | None
    groups: NDArray[Any] | None
    clusters: NDArray[Any] | None
    notes: tuple[str, ...] = ()
    times: NDArray[Any] | None = None
    amounts: FloatColumn | None = None
    ids: NDArray[Any] | None = None
    label_names: tuple[str, ...] = ()
    """The negative and the positive class, if not 0 and 1, and alike in all columns."""

    def __len__(self) -> int:
        return len(self.scores)

    def rows(self, chosen: NDArray[Any]) -> Scores:
        """Some of the rows, by their numbers or by a mask."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: c[chosen] for name, c in columns.items() if isinstance(c, np.ndarray)}
        return replace(self, **arrays)

    @property
    def labelled(self) -> Scores:
        """The rows that have a label; all of them if no labels were read."""
        if self.labels is None or self.labels.dtype.kind == "i":
            return self
        known = self.rows(~np.isnan(self.labels))
        return replace(known, labels=np.asarray(known.labels).astype(np.int64))


def read_scores(
    source: TableSource,
    score: str,
    label: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    *,
    clusters: str | None = None,
    times: str | None = None,
    amounts: str | None = None,
    ids: str | None = None,
    classes: LabelNames | None = None,
    known_as: Sequence[str] = (),
    one_will_do: bool = False,
) -> Scores:
    """The named columns, checked: scores finite, two classes, no group or cluster missing.

    Rows without a label are counted in ``notes``; see :attr:`Scores.labelled`.

    Args:
        source: The table.
        score: The column of scores.
        label: The column of labels.
        group: The column of groups.
        positive: The positive label, where its name does not tell.
        clusters: The column that says which rows belong together.
        times: The column that says when a row was measured.
        amounts: The column that says what a row is worth.
        ids: The column that names the rows.
        classes: The two labels, if they are known; by default they are found in the file.
        known_as: What a certificate calls them; other names may mean the same.
        one_will_do: Whether all rows may be of one class.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    named = {"--score": score, "--label": label, "--group": group, "--clusters": clusters}
    named |= {"--time": times, "--amounts": amounts, "--id": ids}
    wanted = [need_column(source, n, option) for option, n in named.items() if n is not None]
    chunks = list(source.chunks(wanted))
    if not chunks:
        raise TableError(source.path, NO_ROWS)
    notes = []
    if label is not None:
        rows = [row for chunk in chunks for row in chunk.rows_without(label)]
        notes += unlabelled_note(label, len(rows), *rows[:1])
    known, told = score_format(source, score, chunks)
    notes += told
    scores = np.concatenate([score_column(chunk, score, known) for chunk in chunks])
    labels = None
    if label is not None:
        if classes is None:
            count = LabelCount(source.path, label)
            for chunk in chunks:
                count.update(chunk.with_value(label))
            classes = count.two_classes(positive, known=known_as, one_will_do=one_will_do)
        labels = np.concatenate([known_labels(chunk, label, classes) for chunk in chunks])
    groups, members, when, names = (
        None if name is None else np.concatenate([chunk.texts(name) for chunk in chunks])
        for name in (group, clusters, times, ids)
    )
    if when is not None:
        notes += _date_note(str(times), when)
    worth = None
    if amounts is not None:
        written, told = score_format(source, amounts, chunks)
        notes += told
        worth = np.concatenate([_amounts(chunk, amounts, written) for chunk in chunks])
    called = () if classes is None else classes.both
    return Scores(scores, labels, groups, members, tuple(notes), when, worth, names, called)


def _amounts(chunk: Chunk, name: str, known: NumberFormat) -> FloatColumn:
    """A column of amounts."""
    found = score_column(chunk, name, known)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise chunk.error(f"{found[row]:g} is negative; amounts are at least 0.", row, name)
    return found


def _date_note(name: str, texts: NDArray[Any]) -> list[str]:
    """A sentence if dates are not written as ISO dates."""
    if number_of(str(texts[0])) is not None:
        return []
    known = date_format([str(text) for text in np.unique(texts)])
    return [] if known is DATE else format_note(name, known, texts.astype(object))


def read_score_columns(
    source: TableSource,
    scores: Sequence[str],
    labels: Sequence[str],
    positive: str | None = None,
    *,
    known_as: Sequence[str] = (),
    one_will_do: bool = False,
) -> Scores:
    """Scores ``[n, k]`` and labels ``[n, k]`` (0, 1, NaN where there is none) of several columns.

    Args:
        source: The table.
        scores: The columns of scores.
        labels: The columns of labels in the same order; empty if they are not known.
        positive: The positive label, where its name does not tell.
        known_as: What a certificate calls the two labels.
        one_will_do: Whether all labels of a column may be alike.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    wanted = [need_column(source, name, "--score") for name in scores]
    wanted += [need_column(source, name, "--label") for name in labels]
    chunks = list(source.chunks(wanted))
    if not chunks:
        raise TableError(source.path, NO_ROWS)
    known = {name: score_format(source, name, chunks) for name in scores}
    table = [np.column_stack([score_column(c, n, known[n][0]) for n in scores]) for c in chunks]
    notes = tuple(note for _, told in known.values() for note in told)
    if not labels:
        return Scores(np.concatenate(table), None, None, None, notes)
    found = np.full((sum(map(len, chunks)), len(labels)), np.nan)
    called: set[tuple[str, ...]] = set()
    for place, name in enumerate(labels):
        count = LabelCount(source.path, name)
        labelled = [chunk.with_value(name) for chunk in chunks]
        for chunk in labelled:
            count.update(chunk)
        classes = count.two_classes(positive, known=known_as, one_will_do=one_will_do)
        called.add(classes.both)
        found[:, place] = np.concatenate([known_labels(chunk, name, classes) for chunk in chunks])
    names = called.pop() if len(called) == 1 else ()
    return Scores(np.concatenate(table), found, None, None, notes, label_names=names)


def known_labels(chunk: Chunk, name: str, classes: LabelNames) -> Codes | FloatColumn:
    """The labels of a column, 0 or 1; NaN in rows that have none.

    Raises:
        TableError: A label is none of the classes.
    """
    absent = chunk.absent(name)
    if not absent.any():
        return classes.encode(chunk, name)
    found = np.full(len(chunk), np.nan)
    found[~absent] = classes.encode(chunk.with_value(name), name)
    return found


def unlabelled_note(label: str, count: int, first: int = 0) -> list[str]:
    """A sentence on rows that were left out because they have no label, if there are any."""
    if not count:
        return []
    left = f"{plural(count, 'row')} without a label in {quoted(label)} left out"
    return [f"{left}, the first is row {first:,}."]


def score_format(
    source: TableSource, name: str, chunks: Iterable[Chunk] | None = None
) -> tuple[NumberFormat, list[str]]:
    """How the numbers of a column are written, and a note if unusual; see :mod:`.decimal_marks`."""
    known, notes = column_format(source, name, chunks)
    return known or PLAIN, notes


def score_column(chunk: Chunk, name: str, known: NumberFormat = PLAIN) -> FloatColumn:
    """A column of finite numbers.

    Raises:
        TableError: A value is no number in this format, missing or infinite.
    """
    column = chunk.column(name)
    found, wrong = numbers(column, known)
    if wrong is not None:
        problem = f"{quoted(column[wrong])} is not {known.name}; scores must be numbers."
        raise chunk.error(problem, wrong, name)
    finite = np.isfinite(found)
    if not finite.all():
        wrong = int(np.argmin(finite))
        kind = "missing (empty, NaN or NA)" if np.isnan(found[wrong]) else "infinite"
        others = int(np.sum(~finite)) - 1
        rows = f"this row and {plural(others, 'other')}" if others else "the row"
        problem = f"the value is {kind}; scores must be finite numbers. Mend or remove {rows}."
        raise chunk.error(problem, wrong, name)
    return found
