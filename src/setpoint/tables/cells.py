"""Writing csv that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

_STARTS_A_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    *"\uff1d\uff0b\uff0d\uff20",
)  # and the wide forms


def safe_cell(text: str) -> str:
    """A text from a user's file, with a quote before anything a spreadsheet would compute.

    Numbers stay as they are: ``-1.5`` starts with a minus and computes nothing.

    >>> safe_cell("=1+1"), safe_cell("-1.5"), safe_cell("plain")
    ("'=1+1", '-1.5', 'plain')
    """
    if not text.lstrip(" ").startswith(_STARTS_A_FORMULA) or _is_number(text):
        return text
    return f"'{text}"


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Write a csv file completely or not at all; texts must be safe already. Returns the rows."""
    count = 0
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            for row in rows:
                writer.writerow(row)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    return count


def _is_number(text: str) -> bool:
    plain = text.strip(" ")
    try:
        float(plain)
    except ValueError:
        return False
    return all(mark in "+-.0123456789eE" for mark in plain)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
