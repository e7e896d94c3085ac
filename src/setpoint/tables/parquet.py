"""A parquet file, or a folder of them that is one table, through pyarrow (extra ``data``).

The batches are those of ``ParquetFile.iter_batches``, which are filled across row groups:
``pyarrow.dataset`` cuts them at row groups, so means of columns would depend on how a file was
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.tables.source import (
    CHUNK_ROWS,
    Chunk,
    TableError,
    TableSource,
    check_names,
    rows_between,
)

SUFFIXES = (".parquet", ".pq")


class ParquetSource(TableSource):
    """One or several parquet files with the same columns, read one after the other.

    Args:
        path: The file, or the folder.
        files: The file, or the files of the folder in their order.
    """

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        if find_spec("pyarrow") is None:
            raise TableError(path, 'reading parquet needs pyarrow: pip install "setpoint[data]"')
        self.path, self._files = path, list(files)
        self._arrow: Any = import_module("pyarrow")
        self._counts: list[int] = []
        self._kinds: dict[str, str | None] = {}
        for number, file in enumerate(self._files):
            with self._open(file) as opened:
                fields = list(opened.schema_arrow)
                self._counts.append(int(opened.metadata.num_rows))
            names = check_names(file, [field.name for field in fields])
            kinds = {field.name: self._kind(field.type) for field in fields}
            if number == 0:
                self.names, self._kinds = names, kinds
            elif kinds != self._kinds:
                problem = f"its columns are not those of {quoted(self._files[0].name)}"
                raise TableError(file, f"{problem}; the files of a folder are one table.")
        self.unreadable = tuple(name for name, kind in self._kinds.items() if kind is None)

    def chunks(
        self, columns: Iterable[str] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        """See :class:`setpoint.tables.source.TableSource`; files without such rows stay closed."""
        readable = [name for name in self.names if name not in self.unreadable]
        wanted = readable if columns is None else list(columns)
        for name in wanted:
            if name in self.unreadable:
                problem = "holds neither numbers nor text; convert it, or leave it out."
                raise TableError(self.path, problem, column=name)
        first = 0
        for file, count in zip(self._files, self._counts, strict=True):
            if start < first + count and (stop is None or first < stop):
                yield from rows_between(self._rows(file, wanted, first), start, stop, first)
            first += count

    def _rows(self, file: Path, wanted: list[str], first: int) -> Iterator[Chunk]:
        with self._open(file) as opened:
            for batch in opened.iter_batches(
                batch_size=CHUNK_ROWS, columns=wanted, use_threads=False
            ):
                columns = {name: self._values(batch.column(name), name) for name in wanted}
                yield Chunk(self.path, columns, range(first + 1, first + 1 + batch.num_rows))
                first += batch.num_rows

    @contextmanager
    def _open(self, file: Path) -> Iterator[Any]:
        try:
            with import_module("pyarrow.parquet").ParquetFile(file) as opened:
                yield opened
        except (self._arrow.ArrowException, OSError) as error:
            reason = str(error).strip().splitlines()[0][:100] if str(error).strip() else "damaged"
            raise TableError(file, f"cannot be read as parquet ({reason}).") from None

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
