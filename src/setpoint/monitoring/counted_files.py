"""Which rows of a file were counted before: the whole file, or its beginning if it has grown.

A file is known by the values in its columns (scores, times, ids and the like, not labels that may
be filled in later), whatever it is called, however it is written, whichever other columns were
named before, and in any order of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.copies import mixed
from setpoint.monitoring.clusters import cluster_hashes

_MOST_FILES = 20_000
_TELLING_ROWS = 20
"""So many equal rows at the beginning make it the same file under another name."""


def rows_counted(
    files: Iterable[dict[str, Any]], columns: Mapping[str, NDArray[Any]], name: str
) -> int:
    """How many of the first rows were counted before.

    Args:
        files: What :func:`with_file` has kept.
        columns: Of the file by kind, all of one length.
        name: Of the file.
    """
    size = len(next(iter(columns.values())))
    known = [file for file in files if 0 < file["rows"] <= size]
    prints = {kind: _prints(column, {f["rows"] for f in known}) for kind, column in columns.items()}
    found = [
        file["rows"]
        for file in known
        if (file["rows"] == size or file["rows"] >= _TELLING_ROWS or file["name"] == name)
        and _same(file["columns"], {kind: each[file["rows"]] for kind, each in prints.items()})
    ]
    return max(found, default=0)


def with_file(
    files: list[dict[str, Any]], columns: Mapping[str, NDArray[Any]], name: str
) -> list[Any]:
    """The list of files with one more; the oldest of very many are forgotten."""
    size = len(next(iter(columns.values())))
    prints = {kind: _prints(column, {size})[size] for kind, column in columns.items()}
    return [*files, {"name": name, "rows": size, "columns": prints}][-_MOST_FILES:]


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the columns that both have are equal.

    In any order, if one of these columns has many values; few values must have the same order.
    """
    both = [(one[kind], other[kind]) for kind in one if kind in other]
    unsorted = all(a[0] == b[0] for a, b in both)
    return unsorted and (any(a[2] for a, _ in both) or all(a[1] == b[1] for a, b in both))


def _prints(column: NDArray[Any], sizes: set[int]) -> dict[int, list[Any]]:
    """For each number of first rows: a sum of hashes, one that knows the order, many values."""
    numbers = _numbers(np.asarray(column))
    plain = np.cumsum(mixed(numbers))
    ordered = np.cumsum(mixed(numbers ^ mixed(np.arange(len(numbers), dtype=np.uint64))))
    return {
        size: [
            f"{plain[size - 1]:016x}",
            f"{ordered[size - 1]:016x}",
            len(np.unique(numbers[:size])) > size / 2,
        ]
        for size in sizes
    }


def _numbers(column: NDArray[Any]) -> NDArray[np.uint64]:
    """A whole number for each value, equal for equal ones."""
    if column.dtype.kind in "biuf":
        return np.ascontiguousarray(column, np.float64).view(np.uint64)
    return cluster_hashes(column).view(np.uint64)
