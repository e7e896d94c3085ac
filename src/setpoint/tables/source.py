"""One line for everything that can be wrong with a table: the file, the place, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray


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


def quoted(text: object, longest: int = 60) -> str:
    """A name or a value of the user's as part of a one-line message: escaped, and cut if long."""
    written = repr(text)
    return written if len(written) <= longest else f"{written[: longest - 1]}…"


def listed(names: object, most: int = 8) -> str:
    """The first few names, for a message that says what there is."""
    every = [quoted(name, 30) for name in names]  # type: ignore[attr-defined]
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


# ------------------------------------------------------------------------------------------------
# A table on disk, read in chunks: never more of it in memory than asked for.


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
