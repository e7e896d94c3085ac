"""A table on disk, read in chunks, and the columns of a chunk as numbers, texts or codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted, quoted_list

CHUNK_ROWS = 65_536  # rows
NO_ROWS = "has a header and no rows."
FloatColumn = NDArray[np.float64]
Codes = NDArray[np.int64]


class TableError(ValueError):
    """Bad input: the message names the file, then the row or column, then the cure."""

    def __init__(
        self, path: Path, problem: str, *, row: int | None = None, column: str | None = None
    ) -> None:
        places = [str(path)]
        if row is not None:
            places.append(f"row {row:,}")
        if column is not None:
            places.append(f"column {quoted(column)}")
        super().__init__(f"{', '.join(places)}: {problem}")


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table, column by column.

    A column is an array of floats (NaN where a value is missing) or of texts (None where one is).
    """

    path: Path
    columns: dict[str, NDArray[Any]]
    rows: Sequence[int]
    """The number of each row as its reader counts it; in a csv file the header is row 1."""

    def __len__(self) -> int:
        return len(self.rows)

    def error(self, problem: str, place: int, name: str) -> TableError:
        """The error for the value of column ``name`` at ``place`` in this chunk."""
        return TableError(self.path, problem, row=self.rows[place], column=name)

    def between(self, start: int, stop: int) -> Chunk:
        """The rows from place ``start`` to ``stop``."""
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        return Chunk(self.path, columns, self.rows[start:stop])

    def scores(self, name: str) -> FloatColumn:
        """A column of finite numbers.

        Raises:
            TableError: A value is no number, missing or infinite.
        """
        column = self.columns[name]
        found, wrong = numbers(column)
        if wrong is not None:
            problem = f"{quoted(column[wrong])} is not a number; scores must be numbers."
            raise self.error(problem, wrong, name)
        finite = np.isfinite(found)
        if not finite.all():
            wrong = int(np.argmin(finite))
            kind = "missing" if np.isnan(found[wrong]) else "infinite"
            problem = f"the value is {kind}; scores must be finite numbers. Mend or remove the row."
            raise self.error(problem, wrong, name)
        return found

    def codes(self, name: str, what: str = "value") -> tuple[list[str], Codes]:
        """The different values of a column as texts, and the place of each row's among them.

        Raises:
            TableError: A value is missing; ``what`` it is, for the message.
        """
        values, codes = coded(self.columns[name])
        if None in values:
            place = int(np.argmax(codes == values.index(None)))
            raise self.error(f"the {what} is missing; fill it in or remove the row.", place, name)
        return [value for value in values if value is not None], codes

    def texts(self, name: str) -> NDArray[Any]:
        """A column as texts; TableError if a value is missing."""
        values, codes = self.codes(name)
        return np.array(values, dtype=str)[codes]


class TableSource(ABC):
    """A table whose column names are known and whose rows are still on disk.

    Attributes:
        path: The file or folder.
        names: Its columns.
        unreadable: Columns that are neither numbers nor text, such as dates and lists.
    """

    path: Path
    names: tuple[str, ...]
    unreadable: tuple[str, ...] = ()

    @abstractmethod
    def chunks(
        self, columns: Iterable[str] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        """The rows ``start`` to ``stop`` (counted from 0) of some columns, in order.

        Args:
            columns: By default all that can be read.
            start: The first row.
            stop: The row after the last; by default the end of the table.
        """


class RowRange(TableSource):
    """The rows ``start`` to ``stop`` of a table, as a table: what one of several ranks reads."""

    def __init__(self, source: TableSource, start: int, stop: int) -> None:
        self.path, self.names, self.unreadable = source.path, source.names, source.unreadable
        self.source, self.start, self.stop = source, start, stop

    def __len__(self) -> int:
        return self.stop - self.start

    def chunks(
        self, columns: Iterable[str] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        """See :class:`TableSource`."""
        end = self.stop if stop is None else min(self.start + stop, self.stop)
        return self.source.chunks(columns, self.start + start, end)


def rows_between(
    chunks: Iterable[Chunk], start: int, stop: int | None, first: int = 0
) -> Iterator[Chunk]:
    """The rows ``start`` to ``stop`` of ``chunks``, which begin with row ``first``."""
    for chunk in chunks:
        if stop is not None and first >= stop:
            return
        end = first + len(chunk)
        if start <= first and (stop is None or end <= stop):
            yield chunk
        elif end > start:
            last = len(chunk) if stop is None else min(stop - first, len(chunk))
            yield chunk.between(max(start - first, 0), last)
        first = end


def check_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns; TableError if one is empty or occurs twice."""
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(path, f"column {place} has no name; name it in the header.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        problem = f"there are {names.count(twice[0])} columns of this name; rename all but one."
        raise TableError(path, problem, column=twice[0])
    return tuple(names)


def need_column(source: TableSource, name: str, option: str) -> str:
    """``name`` if the table has it; a TableError that lists its columns otherwise."""
    if name not in source.names:
        problem = f"there is no column {quoted(name)} ({option}); the columns are "
        raise TableError(source.path, f"{problem}{quoted_list(source.names)}.")
    return name


def number_of(text: str) -> float | None:
    """The number that a text shows, or None (``1_000`` is a number for Python alone)."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def numbers(column: NDArray[Any]) -> tuple[FloatColumn, int | None]:
    """A column as floats, NaN where a value is missing, and the place of the first non-number."""
    if column.dtype != object:
        return column, None
    found = np.empty(len(column))
    for place, text in enumerate(column):
        value = float("nan") if text is None else number_of(text)
        if value is None:
            return found, place
        found[place] = value
    return found, None


def coded(column: NDArray[Any]) -> tuple[list[str | None], Codes]:
    """The different values of a column as texts (None: missing), and the place of each row's."""
    if column.dtype != object:
        values, codes = np.unique(column, return_inverse=True)
        shown = [None if np.isnan(value) else number_text(float(value)) for value in values]
        return shown, codes.astype(np.int64)
    places: dict[str | None, int] = {}
    found = np.fromiter((places.setdefault(t, len(places)) for t in column), np.int64, len(column))
    return list(places), found


def number_text(value: float) -> str:
    """The shortest text that reads back as ``value``; 3.0 is ``3``, and NaN is empty."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def normal(text: str | None) -> str | None:
    """A label as it is compared: ``1``, ``1.0`` and `` 1`` are one."""
    if text is None:
        return None
    stripped = text.strip()
    value = number_of(stripped)
    return stripped if value is None or not np.isfinite(value) else number_text(value)
