"""Files that are written completely or not at all.

A file is written under another name in the same folder and then renamed: a reader, or a machine
that loses power, finds the old file or the new one, never a part of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the name ``path`` when the context ends without an error."""
    draft = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        with draft.open("xb") as file:
            yield file
            flush(file)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step."""
    with replacing(path) as file:
        file.write(content)


def flush(file: BinaryIO) -> None:
    """Return when the content of ``file`` is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make new names in ``folder`` durable, on systems that can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
