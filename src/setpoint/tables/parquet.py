"""Parquet files through pyarrow, a few row groups at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.source import CHUNK, Chunk, TableError, check_names, quoted

SUFFIXES = (".parquet", ".pq")


class ParquetSource:
    """A parquet file: columns of numbers, truth values and texts; others cannot be read."""

    def __init__(self, path: Path) -> None:
        if find_spec("pyarrow") is None:
            raise TableError(path, 'reading parquet needs pyarrow: pip install "setpoint[data]"')
        self.path = path
        self._arrow: Any = import_module("pyarrow")
        with self._open() as file:
            fields = list(file.schema_arrow)
            self.count = int(file.metadata.num_rows)
        self.names = check_names(path, [field.name for field in fields])
        self._kinds = {field.name: self._kind(field.type) for field in fields}

    @property
    def kinds(self) -> dict[str, str | None]:
        """What each column holds: numbers, texts, or what cannot be read."""
        return dict(self._kinds)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Columns that are neither numbers nor text, such as dates and lists."""
        return tuple(name for name, kind in self._kinds.items() if kind is None)

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.Source`."""
        readable = [name for name in self.names if self._kinds[name] is not None]
        wanted = readable if columns is None else list(columns)
        for name in wanted:
            if self._kinds[name] is None:
                problem = "holds neither numbers nor text; convert it, or leave it out."
                raise TableError(self.path, problem, column=name)
        first = 1
        with self._open() as file:
            batches = file.iter_batches(batch_size=CHUNK, columns=wanted, use_threads=False)
            while True:
                try:
                    batch = next(batches, None)
                except (self._arrow.ArrowException, OSError) as error:
                    raise self._damaged(error) from None
                if batch is None:
                    return
                found = {name: self._values(batch.column(name), name) for name in wanted}
                yield Chunk(found, range(first, first + batch.num_rows))
                first += batch.num_rows

    def _open(self) -> Any:
        try:
            return import_module("pyarrow.parquet").ParquetFile(self.path)
        except (self._arrow.ArrowException, OSError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> TableError:
        reason = str(error).strip().splitlines()[0][:100] if str(error).strip() else "damaged"
        return TableError(self.path, f"cannot be read as parquet ({reason}).")

    def _kind(self, kind: Any) -> str | None:
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if numbers or types.is_boolean(kind):
            return "number"
        texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        return "text" if texts else None

    def _values(self, column: Any, name: str) -> NDArray[Any]:
        if self._arrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if self._kinds[name] == "text":
            texts: NDArray[Any] = np.empty(len(column), dtype=object)
            texts[:] = column.to_pylist()
            return texts
        if self._arrow.types.is_boolean(column.type):
            column = column.cast(self._arrow.int8())
        numbers = column.cast(self._arrow.float64(), safe=False)
        return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


# ------------------------------------------------------------------------------------------------
# A folder of parquet files that are one table: its rows in the order of the files' names.


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
