"""Comma-separated text: utf-8, with or without a byte-order mark, any line ends.

Semicolons and tabs separate too, where the header has no comma. Blank lines are skipped; a row with
too few or too many values is an error. The reader is the standard library's, so that the light
install needs nothing else; pyarrow's takes a column name twice and text behind a closing quote
without an error, and cannot tell the number of a row behind a blank line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._files import replacing
from setpoint.tables.source import (
    CHUNK_ROWS,
    Chunk,
    TableError,
    TableSource,
    check_names,
    number_of,
    number_text,
    rows_between,
)

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""Texts that mean "no value", in any capitals."""
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")


class CsvSource(TableSource):
    """A csv file: the header is read at once, the rows on request; every column is text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._lines() as (_, header):
            self.names = check_names(path, header)

    def chunks(
        self, columns: Iterable[str] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.TableSource`."""
        wanted = list(self.names if columns is None else columns)
        return rows_between(self._chunks(wanted), start, stop)

    def _chunks(self, wanted: list[str]) -> Iterator[Chunk]:
        places = [self.names.index(name) for name in wanted]
        with self._lines() as (lines, _):
            rows: list[int] = []
            kept: list[list[str]] = []
            for number, line in lines:
                rows.append(number)
                kept.append([line[place] for place in places])
                if len(rows) == CHUNK_ROWS:
                    yield self._chunk(wanted, rows, kept)
                    rows, kept = [], []
            if rows:
                yield self._chunk(wanted, rows, kept)

    def _chunk(self, names: list[str], rows: list[int], kept: list[list[str]]) -> Chunk:
        table = zip(*kept, strict=True) if names else ()
        columns = {name: _texts(c) for name, c in zip(names, table, strict=True)}
        return Chunk(self.path, columns, rows)

    @contextmanager
    def _lines(self) -> Iterator[tuple[Iterator[tuple[int, list[str]]], list[str]]]:
        """The rows below the header with their numbers, and the header."""
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                header = file.readline()
                file.seek(0)
                delimiter = next((mark for mark in ",;\t" if mark in header), ",")
                lines = self._checked(csv.reader(file, delimiter=delimiter, strict=True))
                first = next(lines, None)
                if first is None:
                    raise TableError(self.path, "is empty; the first row must name the columns.")
                yield lines, first[1]
        except UnicodeDecodeError:
            raise TableError(self.path, "is not utf-8 text; save it as a utf-8 csv file.") from None

    def _checked(self, reader: Any) -> Iterator[tuple[int, list[str]]]:
        """Rows with their numbers, each as long as the header."""
        width, number = 0, 0
        while True:
            number += 1
            try:
                line = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise TableError(self.path, f"is not csv ({error}).", row=number) from None
            if not line:
                continue
            width = width or len(line)
            if len(line) != width:
                problem = f"has {len(line)} values where the header names {width}; mend the row."
                raise TableError(self.path, problem, row=number)
            yield number, line


def _texts(values: tuple[str, ...]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = [None if value.strip().lower() in MISSING else value for value in values]
    return array


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Write a csv file completely or not at all, cells as they are; returns the number of rows."""
    count = 0
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            count += 1
        text.detach()
    return count


def cells(column: NDArray[Any]) -> list[str]:
    """A column of a chunk as cells for :func:`write_csv`; a missing value is empty."""
    if column.dtype == object:
        return ["" if text is None else safe_cell(text) for text in column]
    return [safe_cell(number_text(float(value))) for value in column]


def safe_cell(text: str) -> str:
    """A text from a user's file, with a quote before anything that a spreadsheet would compute.

    Numbers stay as they are: ``-1.5`` starts with a minus and computes nothing.

    Examples:
        >>> safe_cell("=1+1"), safe_cell("-1.5"), safe_cell("plain")
        ("'=1+1", '-1.5', 'plain')
    """
    if not text.lstrip(" ").startswith(_STARTS_A_FORMULA):
        return text
    plain = text.strip(" ")
    digits = all(mark in "+-.0123456789eE" for mark in plain)
    return text if digits and number_of(plain) is not None else f"'{text}"
