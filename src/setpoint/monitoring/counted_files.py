"""Which rows of a file were counted before: the whole file, or its beginning if it has grown.

A file is known by its rows (scores, times, ids and the like, not labels that may be filled in
later), whatever it is called and however it is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.monitoring.clusters import cluster_hashes

_MOST_FILES = 20_000
_TELLING_ROWS = 20
"""So many equal rows at the beginning make it the same file under another name."""


def rows_counted(files: Iterable[dict[str, Any]], columns: Sequence[Any], name: str) -> int:
    """How many of the first rows were counted before.

    Args:
        files: What :func:`with_file` has kept.
        columns: Of the file, all of one length.
        name: Of the file.
    """
    size = len(columns[0])
    known = [file for file in files if 0 < file["rows"] <= size]
    digests = _digests(columns, {file["rows"] for file in known})
    found = [
        file["rows"]
        for file in known
        if file["digest"] == digests[file["rows"]]
        and (file["rows"] == size or file["rows"] >= _TELLING_ROWS or file["name"] == name)
    ]
    return max(found, default=0)


def with_file(files: list[dict[str, Any]], columns: Sequence[Any], name: str) -> list[Any]:
    """The list of files with one more; the oldest of very many are forgotten."""
    size = len(columns[0])
    entry = {"name": name, "rows": size, "digest": _digests(columns, {size})[size]}
    return [*files, entry][-_MOST_FILES:]


def _digests(columns: Sequence[Any], sizes: set[int]) -> dict[int, str]:
    """For each size the digest of that many first rows."""
    table = np.stack([_numbers(np.asarray(column)) for column in columns], 1)
    found, done, digest = {}, 0, hashlib.sha256(f"{len(columns)} columns".encode())
    for size in sorted(sizes):
        digest.update(np.ascontiguousarray(table[done:size]).tobytes())
        found[size], done = digest.copy().hexdigest(), size
    return found


def _numbers(column: NDArray[Any]) -> NDArray[np.int64]:
    """A whole number for each value, equal for equal ones."""
    if column.dtype.kind in "biuf":
        return np.ascontiguousarray(column, np.float64).view(np.int64)
    return cluster_hashes(column)
