"""A folder of parquet files that are one table: its rows in the order of the files' names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from setpoint.tables.errors import TableError, quoted
from setpoint.tables.parquet import SUFFIXES, ParquetSource
from setpoint.tables.source import Chunk


def shards_in(folder: Path) -> list[Path]:
    """The parquet files of a folder, in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


class ShardSource:
    """Several parquet files with the same columns, read one after the other.

    Args:
        path: What the table is called: the folder.
        files: Its parts, in order.
    """

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        self.path = path
        self._shards = [ParquetSource(file) for file in files]
        first = self._shards[0]
        self.names = first.names
        self.unreadable = first.unreadable
        for shard in self._shards[1:]:
            if shard.kinds != first.kinds:
                problem = f"its columns are not those of {quoted(first.path.name)}"
                raise TableError(shard.path, f"{problem}; the files of a folder are one table.")

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.Source`."""
        return self.between(0, None, columns)

    def between(
        self, start: int, stop: int | None, columns: Iterable[str] | None = None
    ) -> Iterator[Chunk]:
        """Chunks that hold all rows from ``start`` to ``stop``; files without any stay closed."""
        wanted = None if columns is None else list(columns)
        counts = [shard.count for shard in self._shards]
        for shard, count, end in zip(self._shards, counts, accumulate(counts), strict=True):
            if end <= start or (stop is not None and end - count >= stop):
                continue
            for chunk in shard.chunks(wanted):
                rows = range(end - count + chunk.rows[0], end - count + chunk.rows[-1] + 1)
                yield Chunk(chunk.columns, rows)
