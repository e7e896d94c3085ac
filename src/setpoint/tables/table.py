"""A table on disk, read in chunks of rows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted, quoted_list
from setpoint.tables.values import Codes, coded, missing, number_of

CHUNK_ROWS = 65_536
CHUNK_VALUES = 2**22  # of all columns together; wide tables are read in fewer rows at a time
PARQUET, FEATHER = (".parquet", ".pq"), (".feather", ".arrow")
BINARY = (*PARQUET, *FEATHER)
"""Endings of files that are no text."""
NO_ROWS = "has a header and no rows."


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


class Chunk(ABC):
    """Some rows of a table.

    Attributes:
        path: The file.
        rows: The number of each row as its reader counts it; in a csv file the header is row 1.
    """

    path: Path
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    @abstractmethod
    def column(self, name: str) -> NDArray[Any]:
        """The values as floats (NaN: missing) or as texts (None: missing)."""

    @abstractmethod
    def select(self, places: Sequence[int]) -> Chunk:
        """The rows at these places of the chunk."""

    def error(self, problem: str, place: int, name: str) -> TableError:
        """The error for the value of column ``name`` at ``place`` in this chunk."""
        return TableError(self.path, problem, row=self.rows[place], column=name)

    def absent(self, name: str) -> NDArray[np.bool_]:
        """Which rows have no value in a column."""
        return missing(self.column(name))

    def coded(self, name: str) -> tuple[list[str | None], Codes]:
        """The different values of a column as texts (None: missing), and each row's place."""
        return coded(self.column(name))

    def rows_without(self, name: str) -> list[int]:
        """The numbers of the rows that have no value in a column."""
        return [self.rows[place] for place in np.flatnonzero(self.absent(name)).tolist()]

    def with_value(self, name: str) -> Chunk:
        """The rows that have a value in a column."""
        absent = self.absent(name)
        return self.select(np.flatnonzero(~absent).tolist()) if absent.any() else self

    def texts(self, name: str, what: str = "value") -> NDArray[Any]:
        """A column as texts, exactly as they are; long ones as objects, each in memory once.

        Raises:
            TableError: A value is missing; ``what`` it is, for the message.
        """
        values, codes = self.coded(name)
        if None in values:
            place = int(np.argmax(codes == values.index(None)))
            raise self.error(f"the {what} is missing; fill it in or remove the row.", place, name)
        longest = max((len(text) for text in values if text is not None), default=0)
        return np.array(values, dtype=str if longest <= _SHORT else object)[codes]


_SHORT = 64
"""Characters of texts that are kept side by side, row by row."""
NewColumns = Mapping[str, NDArray[Any]]
"""Columns to add to the rows of a chunk: numbers or texts by name."""


class TableSource(ABC):
    """A table whose column names are known and whose rows are still on disk.

    Attributes:
        path: The file or folder.
        names: Its columns.
        unreadable: Columns that are neither numbers, texts nor dates, such as lists.
        delimiter: What stands between values in a text file.
        decimal: The decimal mark, if somebody said which it is.
        marks: The decimal marks of the file and what tells them, once somebody asked.
    """

    path: Path
    names: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    delimiter: str = ""
    decimal: str | None = None
    marks: list[tuple[str, str]] | None = None
    start: int = 0
    stop: int | None = None

    def between(self, start: int, stop: int | None) -> TableSource:
        """The rows ``start`` to ``stop`` (counted from 0), as a table: what one rank reads."""
        part = copy(self)
        part.start, part.stop = start, stop
        return part

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """The rows in order.

        Args:
            columns: The columns that will be read, at least; by default all of them.

        Raises:
            TableError: A row cannot be read.
        """
        wanted = list(self.names if columns is None else dict.fromkeys(columns))
        for chunk, first in self._chunks(wanted):
            start = max(self.start - first, 0)
            stop = len(chunk) if self.stop is None else min(self.stop - first, len(chunk))
            if (start, stop) == (0, len(chunk)):
                yield chunk
            elif start < stop:
                yield chunk.select(range(start, stop))
            if self.stop is not None and first + len(chunk) >= self.stop:
                return

    @property
    def chunk_rows(self) -> int:
        """How many rows are read at a time."""
        return max(1, min(CHUNK_ROWS, CHUNK_VALUES // len(self.names)))

    @abstractmethod
    def _chunks(self, wanted: list[str]) -> Iterator[tuple[Chunk, int]]:
        """Chunks that cover ``start`` to ``stop``, each with the number of its first row."""

    @abstractmethod
    def write(
        self, file: BinaryIO, path: Path, rows: Iterable[tuple[Chunk, NewColumns]], new: NewColumns
    ) -> int:
        """Write rows of this table as they are, with new columns behind; returns how many.

        Args:
            file: Where to.
            path: Its name, which says the format.
            rows: Chunks of this table, and the new columns of each.
            new: Empty columns, for the names and types.
        """


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


def is_index(name: str) -> bool:
    """Whether a column is the index of a data frame, or has no name: nothing to learn from.

    Examples:
        >>> [name for name in ("__index_level_0__", "Unnamed: 0", "index") if is_index(name)]
        ['__index_level_0__', 'Unnamed: 0']
    """
    return re.fullmatch(r"__index_level_\d+__|Unnamed: \d+", name) is not None


def need_column(source: TableSource, name: str, option: str) -> str:
    """``name`` if the table has it; a TableError that lists its columns otherwise."""
    if name not in source.names:
        problem = f"there is no column {quoted(name)} ({option}); the columns are "
        problem += f"{quoted_list(source.names)}."
        spelled = {each.lower(): each for each in source.names}
        if all(number_of(each) is not None for each in source.names):
            problem += " They look like values: the first row must name the columns."
        elif len(source.names) == 1:
            problem += " Values are separated by commas, semicolons, tabs or pipes."
        elif near := get_close_matches(name.lower(), spelled, n=1):
            problem += f" Did you mean {quoted(spelled[near[0]])}?"
        raise TableError(source.path, problem)
    return name
