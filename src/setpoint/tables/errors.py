"""One line for everything that can be wrong with a table: the file, the place, what to do."""

from __future__ import annotations

from pathlib import Path


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
