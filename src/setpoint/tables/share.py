"""A part of a table's rows, as a table: what one of several processes reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from setpoint.tables.shards import ShardSource
from setpoint.tables.source import Chunk, Source


@dataclass(frozen=True)
class RowShare:
    """The rows from ``start`` to ``stop`` of a table, counted from 0.

    Of a folder of parquet files only those with such rows are opened; of a single file, the rows
    before them are read and dropped.
    """

    source: Source
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.source.path

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""
        return self.source.names

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.Source`."""
        if self.start >= self.stop:
            return
        seen = 0
        chunks = self.source.chunks(columns)
        if isinstance(self.source, ShardSource):
            chunks = self.source.between(self.start, self.stop, columns)
        for chunk in chunks:
            if isinstance(self.source, ShardSource):
                seen = chunk.rows[0] - 1
            low, high = max(self.start - seen, 0), min(self.stop - seen, len(chunk))
            if low < high:
                found = {name: column[low:high] for name, column in chunk.columns.items()}
                yield Chunk(found, chunk.rows[low:high])
            seen += len(chunk)
            if seen >= self.stop:
                return
