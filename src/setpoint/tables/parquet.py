"""Parquet files through pyarrow, a few row groups at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.errors import TableError
from setpoint.tables.source import CHUNK, Chunk, check_names

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
