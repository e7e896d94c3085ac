"""Comma-separated text: utf-8, utf-16 with its mark or, if it is neither, Windows-1252.

Semicolons, tabs and pipes separate too: what cuts the header and the first row into the most
columns, or what a first line such as ``sep=;`` says. Line ends are any, blank lines are skipped; a
row with too few or too many values is an error. A column without a name, such as the index that
pandas writes, is called as pandas does, by its place. The reader is the standard library's, so that
the light install needs nothing else; pyarrow's takes a column name twice and text behind a closing
quote without an error, and cannot tell the number of a row behind a blank line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.tables.streams import Opener, need_pyarrow
from setpoint.tables.table import (
    BINARY,
    Chunk,
    NewColumns,
    TableError,
    TableSource,
    check_names,
)
from setpoint.tables.values import text_column

_BLOCK = 2**20
CHUNK_CHARACTERS = 2**25
"""Characters of the rows that are read at a time; wider rows are read in fewer."""
MOST_CHARACTERS = 2**24
"""Of one line, and of one cell."""
_DELIMITERS = ",;\t|"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like that of utf-16
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What text may begin with, and its encoding."""
_WIDE = {
    "utf-16": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-32": (codecs.BOM_UTF32_LE, "utf-32-le"),
}


class CsvChunk(Chunk):
    """Lines of a csv file, as lists of cells."""

    def __init__(
        self, path: Path, names: Sequence[str], rows: Sequence[int], lines: list[list[str]]
    ) -> None:
        self.path, self.names, self.rows, self.lines = path, names, rows, lines

    def column(self, name: str) -> NDArray[Any]:
        """See :class:`Chunk`."""
        place = self.names.index(name)
        return text_column([line[place] for line in self.lines])

    def select(self, places: Sequence[int]) -> CsvChunk:
        """See :class:`Chunk`."""
        rows, lines = [self.rows[i] for i in places], [self.lines[i] for i in places]
        return CsvChunk(self.path, self.names, rows, lines)


class CsvSource(TableSource):
    """A csv file: the header is read at once, the rows on request; every column is text."""

    def __init__(self, path: Path, opener: Opener) -> None:
        self.path, self._opener = path, opener
        self.encoding = self._find_encoding()
        self._lead = 0  # lines before the header
        with self._text() as text:
            start = next(self._limited(text), "")
        if start[:1] in ("{", "["):
            raise TableError(path, "looks like JSON; save it as a csv, parquet or feather file.")
        said = re.fullmatch(r'"?sep=(.)"?', start.rstrip("\r\n"), re.IGNORECASE)
        self.delimiter = said[1] if said else self._find_delimiter(start)
        self._lead = 1 if said else 0
        with self._lines() as lines:
            first = next(lines, None)
        if first is None:
            raise TableError(path, "is empty; the first row must name the columns.")
        self._header = first[1]
        named = [name.strip() or f"Unnamed: {at}" for at, name in enumerate(self._header)]
        self.names = check_names(path, named)

    def _find_delimiter(self, header: str) -> str:
        """What cuts header and first row into equally many columns, the more the better."""
        columns = {}
        for self.delimiter in _DELIMITERS:
            try:
                with self._lines() as lines:
                    widths = [len(line) for _, line in islice(lines, 2)]
            except TableError:
                continue
            columns[self.delimiter] = max(widths, default=0)
        if max(columns.values(), default=0) < 2:
            return next((mark for mark in _DELIMITERS if mark in header), ",")
        return max(columns, key=lambda mark: (columns[mark], mark != ","))

    def _find_encoding(self) -> str:
        with self._opener() as file:
            start = file.read(_BLOCK)
            encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
            if b"\0" in start and encoding.startswith("utf-8"):
                what = "is a workbook or an archive" if start[:2] == b"PK" else "is not text"
                raise TableError(self.path, f"{what}; save it as a utf-8 csv file.")
            decoder = codecs.getincrementaldecoder(encoding)()
            try:
                decoder.decode(start)
                for block in iter(lambda: file.read(_BLOCK), b""):
                    decoder.decode(block)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                if encoding == "utf-8":
                    return "cp1252"
                problem = f"begins like {encoding} text and is broken; save it as a utf-8 csv file."
                raise TableError(self.path, problem) from None
            return encoding

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        try:
            with self._opener() as file:
                yield io.TextIOWrapper(file, encoding=self.encoding, newline="")
        except UnicodeDecodeError:
            problem = "is neither utf-8 nor Windows-1252 text; save it as a utf-8 csv file."
            raise TableError(self.path, problem) from None

    @contextmanager
    def _lines(self) -> Iterator[Iterator[tuple[int, list[str]]]]:
        """The rows with their numbers, the header first."""
        with self._text() as text:
            for _ in range(self._lead):
                text.readline()
            csv.field_size_limit(max(csv.field_size_limit(), MOST_CHARACTERS))
            limited = self._limited(text)
            yield self._checked(csv.reader(limited, delimiter=self.delimiter, strict=True))

    def _limited(self, text: io.TextIOWrapper) -> Iterator[str]:
        for line in iter(lambda: text.readline(MOST_CHARACTERS), ""):
            if len(line) == MOST_CHARACTERS:
                problem = f"a line of more than {MOST_CHARACTERS:,} characters: not a csv file."
                raise TableError(self.path, problem)
            yield line

    def _checked(self, reader: Any) -> Iterator[tuple[int, list[str]]]:
        """Rows with their numbers, each as long as the header."""
        width, number = 0, self._lead
        while True:
            number += 1
            try:
                line = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                hint = ": is a quote not closed?" if "larger than" in str(error) else "."
                raise TableError(self.path, f"is not csv ({error}){hint}", row=number) from None
            if not line:
                continue
            width = width or len(line)
            if len(line) != width:
                found = plural(len(line), "value")
                problem = f"has {found} where the header names {width}; mend the row."
                raise TableError(self.path, problem, row=number)
            yield number, line

    def _chunks(self, wanted: list[str]) -> Iterator[tuple[Chunk, int]]:
        places, first = [self.names.index(name) for name in wanted], 0
        with self._lines() as lines:
            next(lines)
            while some := self._some(lines):
                kept = [[line[place] for place in places] for _, line in some]
                yield CsvChunk(self.path, wanted, [number for number, _ in some], kept), first
                first += len(some)

    def _some(self, lines: Iterator[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
        """As many rows as are read at a time."""
        some, characters = [], 0
        for number, line in islice(lines, self.chunk_rows):
            some.append((number, line))
            characters += sum(map(len, line))
            if characters > CHUNK_CHARACTERS:
                break
        return some

    def write(
        self, file: BinaryIO, path: Path, rows: Iterable[tuple[Chunk, NewColumns]], new: NewColumns
    ) -> int:
        """See :class:`TableSource`; with the delimiter and the encoding of this file."""
        if path.suffix.lower() in BINARY:
            problem = f"{path} would be csv by another name; name a .csv file with --out."
            raise TableError(self.path, problem)
        lines = (
            [*line, *added]
            for chunk, columns in rows
            for line, *added in zip(_lines_of(chunk), *map(cells, columns.values()), strict=True)
        )
        header = [*self._header, *new]
        return write_csv(file, path, header, lines, self.delimiter, self.encoding)


def _lines_of(chunk: Chunk) -> list[list[str]]:
    assert isinstance(chunk, CsvChunk)
    return chunk.lines


def cells(column: NDArray[Any]) -> list[str]:
    """Numbers or texts as cells: the shortest text that reads back as the number."""
    return [str(value) for value in column]


def write_csv(
    file: BinaryIO,
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> int:
    """Write cells as they are, compressed if the name says so; returns the number of rows."""
    packed = _packing(file, path)
    if encoding in _WIDE:  # Python leaves the mark out where it cannot seek
        mark, encoding = _WIDE[encoding]
        (packed or file).write(mark)
    text = io.TextIOWrapper(packed or file, encoding, newline="", write_through=True)
    # a carriage return in a cell is quoted only if it is part of the line end
    writer = csv.writer(_LineFeeds(text), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(header)
    count = 0
    for row in rows:
        writer.writerow(row)
        count += 1
    text.detach()
    if packed is not None:
        packed.close()
    return count


def _packing(file: BinaryIO, path: Path) -> Any:
    """What compresses into ``file``, if the name of the file ends in .gz or .zst; else None."""
    ending = path.suffix.lower()
    if ending == ".gz":
        return gzip.GzipFile(fileobj=file, mode="wb", mtime=0)
    if ending != ".zst":
        return None
    need_pyarrow(path, "writing zstd")
    return _Zstd(file)


class _Open(io.BufferedIOBase):
    """Writes into a file, and leaves it open."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return int(self._file.write(content))


class _Zstd(_Open):
    """Compresses into a file, and leaves it open."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow

        super().__init__(
            pyarrow.CompressedOutputStream(pyarrow.PythonFile(_Open(file), "w"), "zstd")
        )

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _LineFeeds:
    """Writes lines that end in CR LF with LF alone."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def write(self, line: str) -> int:
        return self._text.write(line[:-2] + "\n")
