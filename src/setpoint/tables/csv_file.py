"""Comma-separated text with the standard library: utf-8, with or without a mark, any line ends.

Semicolons and tabs separate too, where the header has no comma. Blank lines are skipped; a row with
too few or too many values is an error and never a guess.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.source import CHUNK, Chunk, TableError, check_names

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""What stands for "no value", in any capitals."""


class CsvSource:
    """A csv file: the header is read at once, the rows when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._lines() as (_, header):
            self.names = check_names(path, header)

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.Source`; every column is text."""
        wanted = list(self.names if columns is None else columns)
        places = [self.names.index(name) for name in wanted]
        with self._lines() as (lines, _):
            rows: list[int] = []
            kept: list[list[str]] = []
            for number, line in lines:
                rows.append(number)
                kept.append([line[place] for place in places])
                if len(rows) == CHUNK:
                    yield _chunk(wanted, rows, kept)
                    rows, kept = [], []
            if rows:
                yield _chunk(wanted, rows, kept)

    @contextmanager
    def _lines(self) -> Iterator[tuple[Iterator[tuple[int, list[str]]], list[str]]]:
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                delimiter = _delimiter(file.readline())
                file.seek(0)
                reader = csv.reader(file, delimiter=delimiter, strict=True)
                lines = self._checked(reader)
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


def _delimiter(header: str) -> str:
    return next((mark for mark in ",;\t" if mark in header), ",")


def _chunk(names: list[str], rows: list[int], kept: list[list[str]]) -> Chunk:
    table = zip(*kept, strict=True) if names else ()
    return Chunk({name: _texts(c) for name, c in zip(names, table, strict=True)}, rows)


def _texts(values: tuple[str, ...]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = [None if value.strip().lower() in MISSING else value for value in values]
    return array


# ------------------------------------------------------------------------------------------------
# Writing csv that a spreadsheet shows and does not run.


_STARTS_A_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    *"\uff1d\uff0b\uff0d\uff20",
)  # and the wide forms


def safe_cell(text: str) -> str:
    """A text from a user's file, with a quote before anything a spreadsheet would compute.

    Numbers stay as they are: ``-1.5`` starts with a minus and computes nothing.

    >>> safe_cell("=1+1"), safe_cell("-1.5"), safe_cell("plain")
    ("'=1+1", '-1.5', 'plain')
    """
    if not text.lstrip(" ").startswith(_STARTS_A_FORMULA) or _is_number(text):
        return text
    return f"'{text}"


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Write a csv file completely or not at all; texts must be safe already. Returns the rows."""
    count = 0
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            for row in rows:
                writer.writerow(row)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    return count


def _is_number(text: str) -> bool:
    plain = text.strip(" ")
    try:
        float(plain)
    except ValueError:
        return False
    return all(mark in "+-.0123456789eE" for mark in plain)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
