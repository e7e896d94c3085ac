"""A table on disk, read in chunks: never more of it in memory than asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from setpoint.tables.errors import TableError, listed, quoted

CHUNK = 65_536


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table, column by column.

    A column is an array of floats (NaN where a value is missing) or of texts (None where one is).
    """

    columns: dict[str, NDArray[Any]]
    rows: Sequence[int]
    """The number of each row as its reader counts it; in a csv file the header is row 1."""

    def __len__(self) -> int:
        return len(self.rows)


class Source(Protocol):
    """A table whose names are known and whose rows are still on disk."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """Its rows in order, only the named columns (by default all that can be read)."""


def check_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names by which every column can be asked for: none empty, none twice."""
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(path, f"column {place} has no name; name it in the header.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        problem = f"there are {names.count(twice[0])} columns of this name; rename all but one."
        raise TableError(path, problem, column=twice[0])
    return tuple(names)


def need_column(source: Source, name: str, what: str) -> str:
    """``name`` if the table has it, or an error that says what it has."""
    if name not in source.names:
        problem = f"there is no column {quoted(name)} ({what}); the columns are "
        raise TableError(source.path, f"{problem}{listed(source.names)}.")
    return name
