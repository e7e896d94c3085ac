"""Bytes of a table from wherever they come: a file, a pipe, standard input; compressed or not.

What cannot be read twice is copied into a temporary file that has no name, so that nothing is left
behind however the program ends. A pipe that says nothing for :data:`SILENCE` seconds, and more
than :data:`MOST_BYTES` from a pipe or out of a compressed file, end with a message.
"""

from __future__ import annotations

import gzip
import os
import select
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO
from weakref import finalize

from setpoint.tables.table import TableError

MOST_BYTES = 4 * 2**30
SILENCE = 600.0  # seconds that a writer may be silent
FIRST_PATIENCE = 60.0  # seconds until there is a writer
STDIN = Path("-")
_BLOCK = 2**20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

Opener = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens the bytes of a table at their start, as often as it is called."""


def opener_of(path: Path) -> Opener:
    """The bytes at ``path`` (``-``: standard input), uncompressed, so that they can be sought in.

    Raises:
        TableError: There is no such file, nobody writes into a pipe, or too much comes out of it.
    """
    try:
        mode = os.fstat(0).st_mode if path == STDIN else path.stat().st_mode
    except FileNotFoundError:
        raise TableError(path, "no such file.") from None
    except OSError as error:
        raise TableError(path, f"cannot be read: {error.strerror}.") from None
    opener: Opener
    if stat.S_ISREG(mode) and path != STDIN:
        opener = partial(_read, path)  # which can be sent to other processes
    else:
        opener = _kept(path, _piped(path))
    with opener() as file:
        start = file.read(4)
    if start.startswith(_GZIP):
        return _kept(path, _gunzipped(path, opener))
    return _kept(path, _unzstd(path, opener)) if start == _ZSTD else opener


def _read(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except PermissionError:
        raise TableError(path, "cannot be read: you may not open it.") from None


def _kept(path: Path, blocks: Iterator[bytes]) -> Opener:
    """Copy ``blocks`` into a file without a name."""
    size = 0
    with TemporaryFile() as copy:
        for block in blocks:
            if size == 0 and not block[:64].strip(b"\0"):
                raise TableError(path, "starts with zeros: not a table.")
            size += len(block)
            if size > MOST_BYTES:
                problem = f"more than {MOST_BYTES / 2**30:g} GB come out of it; "
                raise TableError(path, f"{problem}write it to a file first.")
            copy.write(block)
        copy.flush()
        handle = os.dup(copy.fileno())

    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        with os.fdopen(os.dup(handle), "rb") as again:
            again.seek(0)
            yield again

    finalize(opener, os.close, handle)
    return opener


def _piped(path: Path) -> Iterator[bytes]:
    handle = os.dup(0) if path == STDIN else os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        patience = FIRST_PATIENCE if path != STDIN else SILENCE
        while True:
            if not _wait(handle, patience):
                problem = f"nothing came out of it for {patience:g} seconds; does anybody write?"
                raise TableError(path, problem)
            block = os.read(handle, _BLOCK)
            if not block:
                return
            patience = SILENCE
            yield block
    finally:
        os.close(handle)


def _wait(handle: int, seconds: float) -> bool:
    """Whether there is something to read, or the end, before so many seconds have passed."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(handle, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(seconds * 1000))


def _gunzipped(path: Path, opener: Opener) -> Iterator[bytes]:
    try:
        with opener() as packed, gzip.GzipFile(fileobj=packed) as file:
            yield from iter(lambda: file.read(_BLOCK), b"")
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(path, f"cannot be uncompressed ({error}).") from None


def _unzstd(path: Path, opener: Opener) -> Iterator[bytes]:
    need_pyarrow(path, "reading zstd")
    import pyarrow

    try:
        with opener() as packed, pyarrow.CompressedInputStream(packed, "zstd") as file:
            yield from iter(lambda: file.read(_BLOCK), b"")
    except (OSError, pyarrow.ArrowException) as error:
        raise TableError(path, f"cannot be uncompressed ({error}).") from None


def need_pyarrow(path: Path, what: str) -> None:
    """TableError that says how to install pyarrow, if it is not there."""
    if find_spec("pyarrow") is None:
        raise TableError(path, f'{what} needs pyarrow: pip install "setpoint[data]"')
