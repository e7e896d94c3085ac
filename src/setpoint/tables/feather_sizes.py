"""How large the record batches of a feather file are, before a byte of them is decompressed.

A file of kilobytes may hold gigabytes. Its footer says where each batch stands; the head of a
batch names its rows and its buffers, and in front of a compressed buffer stands its true length.
The words are those of Arrow's ``File.fbs`` and ``Message.fbs``, which are flatbuffers: a table is
an offset to its fields, a vector a count and its items.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

_CODECS = "lz4", "zstd"
_FOOTER_BATCHES, _DICTIONARY, _RECORDS = 3, 2, 3
_MOST = 2**26  # bytes of a footer, or of the head of one batch


class BatchSize(NamedTuple):
    """A record batch or a dictionary."""

    rows: int
    buffers: tuple[int, ...]
    """Bytes of each, decompressed."""
    codec: str | None

    @property
    def total(self) -> int:
        """Bytes of all columns."""
        return max(sum(self.buffers), 8 * self.rows)

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer, or of a float for every row."""
        return max(*self.buffers, 8 * self.rows, 0)


def batch_sizes(file: BinaryIO) -> tuple[list[BatchSize], list[BatchSize]]:
    """The dictionaries and the record batches of a file.

    Raises:
        OSError: It is damaged.
    """
    try:
        file.seek(-10, 2)
        size, mark = struct.unpack("<i6s", file.read(10))
        if mark != b"ARROW1":
            raise OSError("it does not end as such a file")
        footer = _Table.root(_read(file, -10 - size, size, 2))
        return (
            [_size_of(file, block) for block in footer.structs(2, "<qi4xq")],
            [_size_of(file, block) for block in footer.structs(_FOOTER_BATCHES, "<qi4xq")],
        )
    except (struct.error, ValueError, OverflowError):
        raise OSError("its footer or the head of a batch is damaged") from None


def _read(file: BinaryIO, start: int, count: int, whence: int = 0) -> bytes:
    if not 0 < count <= _MOST:
        raise ValueError("so long is no head")
    file.seek(start, whence)
    return file.read(count)


def _size_of(file: BinaryIO, block: tuple[Any, ...]) -> BatchSize:
    """The size of the batch whose message begins at an offset, from its head alone."""
    start, head, _ = block
    content = _read(file, start, head)
    message = _Table.root(content[8:] if content[:4] == b"\xff" * 4 else content[4:])
    batch = message.table(2)
    if message.number(1, "<B") == _DICTIONARY:
        batch = batch.table(1)
    packed = batch.table(3) if batch.has(3) else None
    lengths = []
    for offset, length in batch.structs(2, "<qq"):
        if packed is not None and length >= 8:
            file.seek(start + head + offset)
            (true,) = struct.unpack("<q", file.read(8))
            length = length - 8 if true == -1 else true
        if length < 0:
            raise ValueError("a buffer has a negative length")
        lengths.append(length)
    codec = None if packed is None else _CODECS[packed.number(0, "<b") != 0]
    return BatchSize(batch.number(0, "<q"), tuple(lengths), codec)


class _Table(NamedTuple):
    """A table of flatbuffers: its fields by number, absent ones zero."""

    content: bytes
    start: int

    @classmethod
    def root(cls, content: bytes) -> _Table:
        return cls(content, struct.unpack_from("<I", content)[0])

    def _place(self, field: int) -> int:
        fields = self.start - struct.unpack_from("<i", self.content, self.start)[0]
        if not 0 <= fields < len(self.content):
            raise ValueError("no such place")
        size = struct.unpack_from("<H", self.content, fields)[0]
        if 4 + 2 * field >= size:
            return 0
        return int(struct.unpack_from("<H", self.content, fields + 4 + 2 * field)[0])

    def has(self, field: int) -> bool:
        """Whether a field is there."""
        return self._place(field) != 0

    def number(self, field: int, form: str) -> int:
        """A field that is a number."""
        at = self._place(field)
        return int(struct.unpack_from(form, self.content, self.start + at)[0]) if at else 0

    def _follow(self, field: int) -> int:
        at = self.start + self._place(field)
        return at + int(struct.unpack_from("<I", self.content, at)[0])

    def table(self, field: int) -> _Table:
        """A field that is a table."""
        if not self.has(field):
            raise ValueError("no such place")
        return _Table(self.content, self._follow(field))

    def structs(self, field: int, form: str) -> Iterator[tuple[Any, ...]]:
        """A field that is a vector of structures."""
        if not self.has(field):
            return iter(())
        at = self._follow(field)
        (count,) = struct.unpack_from("<I", self.content, at)
        size = struct.calcsize(form)
        if at + 4 + count * size > len(self.content):
            raise ValueError("no such place")
        return struct.iter_unpack(form, self.content[at + 4 : at + 4 + count * size])
