"""Parquet files, folders of parquet files that are one table, and feather, through pyarrow.

The batches of parquet are those of ``ParquetFile.iter_batches``, which are filled across row
groups: ``pyarrow.dataset`` cuts them at row groups, so means of columns would depend on how a file
was written. Text is read as dictionaries, and a batch has so few rows that its columns take at most
:data:`BATCH_BYTES` beside one page of the file, however well it was compressed. Batches of feather
that take more are read column by column, a part of the rows at a time; a column of one batch that
alone takes more is refused before it is decompressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.tables.csv_file import cells, write_csv
from setpoint.tables.feather_sizes import BatchSize, batch_sizes
from setpoint.tables.streams import MOST_BYTES, Opener, need_pyarrow
from setpoint.tables.table import (
    BINARY,
    FEATHER,
    PARQUET,
    Chunk,
    NewColumns,
    TableError,
    TableSource,
    check_names,
)
from setpoint.tables.values import Codes, number_text

BATCH_BYTES = 2**28
"""Bytes of decoded columns at a time."""
_EXACT_DIGITS = 15  # that a float keeps


class ArrowChunk(Chunk):
    """A record batch; ``rows`` are counted from 1."""

    def __init__(self, path: Path, rows: Sequence[int], batch: Any) -> None:
        self.path, self.rows, self.batch = path, rows, batch

    def column(self, name: str) -> NDArray[Any]:
        """See :class:`Chunk`; numbers that a float cannot hold exactly come as texts."""
        values = self.batch.column(name)
        return _floats(values) if self._is_number(name, values) else _texts(values)

    def _is_number(self, name: str, values: Any) -> bool:
        kind = _kind(values.type)
        if kind is None:
            problem = "holds neither numbers, texts nor dates; convert it, or leave it out."
            raise TableError(self.path, problem, column=name)
        return kind == "number" and _is_exact(values)

    def absent(self, name: str) -> NDArray[np.bool_]:
        """See :class:`Chunk`."""
        values = self.batch.column(name)
        if _kind(values.type) == "text":
            return super().absent(name)
        return np.asarray(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))

    def coded(self, name: str) -> tuple[list[str | None], Codes]:
        """See :class:`Chunk`; without a text for every row."""
        from pyarrow import types

        values = self.batch.column(name)
        if not types.is_dictionary(values.type):
            values = values.dictionary_encode()
        if self._is_number(name, values.dictionary):
            known = _floats(values.dictionary)
            names = [None if np.isnan(value) else number_text(float(value)) for value in known]
        else:
            names = _written(values.dictionary)
        every, places = _placed(names, values)
        used = np.flatnonzero(np.bincount(places, minlength=len(every)))
        codes = np.zeros(len(every), np.int64)
        codes[used] = np.arange(len(used))
        return [every[place] for place in used], codes[places]

    def select(self, places: Sequence[int]) -> ArrowChunk:
        """See :class:`Chunk`."""
        import pyarrow

        batch = self.batch.take(pyarrow.array(places, pyarrow.int64()))
        return ArrowChunk(self.path, [self.rows[i] for i in places], batch)


def _kind(kind: Any) -> str | None:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    if any(is_one(kind) for is_one in numbers):
        return "number"
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    if any(is_one(kind) for is_one in (*texts, types.is_date, types.is_timestamp)):
        return "text"
    return None


def _is_exact(values: Any) -> bool:
    """Whether floats hold these numbers: integers up to 2^53, decimals of few digits."""
    from pyarrow import compute, types

    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if types.is_decimal(kind):
        return bool(kind.precision <= _EXACT_DIGITS)
    if not types.is_integer(kind) or kind.bit_width <= 32:
        return True
    ends = compute.min_max(_decoded(values)).as_py()
    return ends["min"] is None or (ends["max"] <= 2**53 and ends["min"] >= -(2**53))


def _decoded(values: Any) -> Any:
    from pyarrow import types

    return values.dictionary_decode() if types.is_dictionary(values.type) else values


def _floats(values: Any) -> NDArray[np.float64]:
    import pyarrow

    values = _decoded(values)
    if pyarrow.types.is_boolean(values.type):
        values = values.cast(pyarrow.int8())
    found = values.cast(pyarrow.float64(), safe=False)
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64)


def _texts(values: Any) -> NDArray[Any]:
    """Texts; each different one is in memory once."""
    from pyarrow import types

    if not types.is_dictionary(values.type):
        values = values.dictionary_encode()
    names, codes = _placed(_written(values.dictionary), values)
    known = np.empty(len(names), dtype=object)
    known[:] = names
    found: NDArray[Any] = known[codes]
    return found


def _placed(names: list[str | None], values: Any) -> tuple[list[str | None], Codes]:
    """The names of a dictionary, None behind them, and each row's place: of a blank one None's."""
    last = len(names)
    places = [last if name is None or not name.strip() else i for i, name in enumerate(names)]
    indices = values.indices.fill_null(last).to_numpy(zero_copy_only=False)
    return [*names, None], np.array([*places, last], np.int64)[indices]


def _written(values: Any) -> list[str | None]:
    """Values as texts: numbers exactly, dates and times in ISO format."""
    import pyarrow

    if pyarrow.types.is_temporal(values.type):
        values = values.cast(pyarrow.string())
    return [None if value is None else str(value) for value in values.to_pylist()]


class ArrowSource(TableSource):
    """One or several files with the same columns, read one after the other.

    Args:
        path: The file, or the folder.
        files: The path of each file, and how it is opened.
        feather: Whether it is a feather file (one only).
    """

    def __init__(
        self, path: Path, files: Sequence[tuple[Path, Opener]], *, feather: bool = False
    ) -> None:
        need_pyarrow(path, f"reading {'feather' if feather else 'parquet'}")
        self.path, self.feather, self._files = path, feather, list(files)
        self._counts: list[int] = []
        self._texts: list[str] = []
        self._sizes: list[BatchSize] = []
        for place, (file, _) in enumerate(self._files):
            with self._open(place) as opened:
                if feather:
                    schema = _reader(opened).schema
                    self._sizes = self._batch_sizes(opened)
                    count = sum(size.rows for size in self._sizes)
                else:
                    schema, count = opened.schema_arrow, int(opened.metadata.num_rows)
            self._counts.append(count)
            names = check_names(file, schema.names)
            if place == 0:
                self.names, self.schema = names, schema
            elif not schema.equals(self.schema):
                raise TableError(file, self._difference(schema))
        self.unreadable = tuple(field.name for field in self.schema if _kind(field.type) is None)
        self._texts = [field.name for field in self.schema if str(field.type) == "string"]

    def _difference(self, schema: Any) -> str:
        """How the columns of a file are not those of the first one."""
        first = quoted(self._files[0][0].name)
        for name in dict.fromkeys([*self.schema.names, *schema.names]):
            kinds = [
                str(each.field(name).type) if name in each.names else "not there"
                for each in (self.schema, schema)
            ]
            if kinds[0] != kinds[1]:
                difference = f"column {quoted(name)} is {kinds[1]}, and {kinds[0]} in {first}"
                return f"{difference}; the files of a folder are one table."
        return f"its columns are in another order than those of {first}."

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(self._counts)

    def parts(self) -> list[ArrowSource]:
        """Each file as a table of its own."""
        found = []
        for place, (file, _) in enumerate(self._files):
            part = copy(self)
            part.path = file
            part._files, part._counts = [self._files[place]], [self._counts[place]]
            found.append(part)
        return found

    @contextmanager
    def _open(self, place: int) -> Iterator[Any]:
        """A file of parquet; of feather its bytes."""
        from pyarrow import ArrowException, parquet

        file, opener = self._files[place]
        kind = "feather" if self.feather else "parquet"
        try:
            with opener() as content:
                if self.feather:
                    yield content
                else:
                    yield parquet.ParquetFile(content, read_dictionary=self._texts)
        except (ArrowException, OSError) as error:
            reason = str(error).strip().splitlines()[0][:100] if str(error).strip() else "damaged"
            raise TableError(file, f"cannot be read as {kind} ({reason}).") from None

    def _chunks(self, wanted: list[str]) -> Iterator[tuple[Chunk, int]]:
        first = 0
        for place, count in enumerate(self._counts):
            if self.start < first + count and (self.stop is None or first < self.stop):
                start = first
                for batch in self._batches(place, wanted):
                    rows = range(start + 1, start + 1 + batch.num_rows)
                    yield ArrowChunk(self.path, rows, batch), start
                    start += batch.num_rows
            first += count

    def _batches(self, place: int, wanted: list[str]) -> Iterator[Any]:
        with self._open(place) as opened:
            if self.feather:
                for batch in self._feather_batches(opened, wanted):
                    for start in range(0, batch.num_rows, self.chunk_rows):
                        yield batch.slice(start, self.chunk_rows)
            else:
                size = _rows_within(opened.metadata, wanted, self.chunk_rows)
                yield from opened.iter_batches(size, columns=wanted, use_threads=False)

    def _batch_sizes(self, content: BinaryIO) -> list[BatchSize]:
        """The sizes of the batches of a feather file; TableError if one is too large to read."""
        dictionaries, sizes = batch_sizes(content)
        every = [*dictionaries, *sizes]
        if all(one.largest <= BATCH_BYTES and one.total <= MOST_BYTES for one in every):
            return sizes
        worst = max(every, key=lambda one: one.total)
        problem = f"has a batch of {worst.rows:,} rows that takes {worst.total / 2**30:.3g} GB; "
        problem += "write it in smaller ones, as pyarrow.feather.write_feather does."
        raise TableError(self.path, problem)

    def _feather_batches(self, content: BinaryIO, wanted: list[str]) -> Iterator[Any]:
        """The columns of each batch, or of parts of it that take at most :data:`BATCH_BYTES`."""
        import pyarrow

        whole = _reader(content, self.schema, wanted)
        for number, size in enumerate(self._sizes):
            if size.total <= BATCH_BYTES:
                yield _sound(whole.get_batch(number).select(wanted))
                continue
            step = max(1, BATCH_BYTES // 2 * size.rows // size.total)  # two parts live at a time
            for start in range(0, size.rows, step):
                rows = pyarrow.array(range(start, min(start + step, size.rows)), pyarrow.int64())
                columns = (_reader(content, self.schema, [name]) for name in wanted)
                taken = [
                    _sound(column.get_batch(number)).column(0).take(rows) for column in columns
                ]
                yield pyarrow.RecordBatch.from_arrays(taken, wanted)

    def write(
        self, file: BinaryIO, path: Path, rows: Iterable[tuple[Chunk, NewColumns]], new: NewColumns
    ) -> int:
        """See :class:`TableSource`: in the format that the name says, or in that of this table."""
        suffix = path.suffix.lower()
        own = suffix == "" and file.seekable()  # a pipe gets text
        if not own and suffix not in BINARY:
            return self._write_csv(file, path, rows, new)
        from pyarrow import ipc, parquet

        schema = self.schema
        for name, values in new.items():
            schema = schema.append(_field(name, values))
        codec = self._sizes[0].codec if self._sizes else None
        packed = ipc.IpcWriteOptions(compression=codec)
        count = 0
        with (
            ipc.new_file(file, schema, options=packed)
            if suffix in FEATHER or (own and self.feather)
            else parquet.ParquetWriter(file, schema)
        ) as writer:
            for chunk, columns in rows:
                for batch in _with_columns(chunk, columns, schema):
                    writer.write_batch(batch)
                    count += batch.num_rows
        return count

    def _write_csv(
        self, file: BinaryIO, path: Path, rows: Iterable[tuple[Chunk, NewColumns]], new: NewColumns
    ) -> int:
        if self.unreadable:
            problem = f"a csv file cannot hold it; name a {PARQUET[0]} file with --out."
            raise TableError(self.path, problem, column=self.unreadable[0])
        lines = (
            line
            for chunk, columns in rows
            for line in zip(
                *(_cells(_batch(chunk).column(name)) for name in self.names),
                *map(cells, columns.values()),
                strict=True,
            )
        )
        return write_csv(file, path, [*self.names, *new], lines)


def _reader(content: BinaryIO, schema: Any = None, wanted: Sequence[str] = ()) -> Any:
    """Reads batches of a feather file, of these columns alone."""
    from pyarrow import ipc

    fields = [schema.get_field_index(name) for name in wanted]
    return ipc.open_file(
        content, options=ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    )


def _sound(batch: Any) -> Any:
    """A batch as it is; an error of pyarrow, instead of a crash later, if its offsets are wrong."""
    batch.validate(full=True)
    return batch


def _batch(chunk: Chunk) -> Any:
    assert isinstance(chunk, ArrowChunk)
    return chunk.batch


def _rows_within(metadata: Any, wanted: list[str], enough: int) -> int:
    """Up to ``enough`` rows whose columns take at most :data:`BATCH_BYTES`, as the file tells.

    Sizes of columns are asked for only where those of whole rows do not settle it: pyarrow ends the
    process if they are damaged.
    """
    most, begins = 1.0, tuple(f"{name}." for name in wanted)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows = max(group.num_rows, 1)
        whole = group.total_byte_size / rows + 8 * group.num_columns
        if group.total_byte_size >= 0 and whole * enough <= BATCH_BYTES:
            continue
        columns = (group.column(i) for i in range(group.num_columns))
        mine = [c for c in columns if f"{c.path_in_schema}.".startswith(begins)]
        size = sum(max(c.total_uncompressed_size, 8 * group.num_rows) for c in mine)
        most = max(most, size / rows)
    return max(1, min(enough, int(BATCH_BYTES / most)))


def _field(name: str, values: NDArray[Any]) -> Any:
    import pyarrow

    return pyarrow.field(name, pyarrow.array(values).type)


def _with_columns(chunk: Chunk, columns: NewColumns, schema: Any) -> Iterator[Any]:
    """Batches of the columns as the file had them and the new ones, small in memory."""
    import pyarrow

    batch = _batch(chunk)
    added = [pyarrow.array(values) for values in columns.values()]
    longest = sum(_longest(column) for column in batch.columns)
    step = max(1, min(batch.num_rows, BATCH_BYTES // max(longest, 1)))
    for start in range(0, batch.num_rows, step):
        arrays = [column.slice(start, step) for column in (*batch.columns, *added)]
        fields = zip(arrays, schema, strict=True)
        yield pyarrow.RecordBatch.from_arrays([_as(a, f.type) for a, f in fields], schema=schema)


def _longest(column: Any) -> int:
    """Bytes of the longest text of a column that was read as a dictionary."""
    from pyarrow import compute, types

    if not types.is_dictionary(column.type) or not types.is_string(column.type.value_type):
        return 0
    return compute.max(compute.binary_length(column.dictionary)).as_py() or 0


def _as(column: Any, kind: Any) -> Any:
    return column if column.type.equals(kind) else column.cast(kind)


def _cells(column: Any) -> list[str]:
    """A column for a csv file; a missing value is empty."""
    return [value or "" for value in _written(_decoded(column))]
