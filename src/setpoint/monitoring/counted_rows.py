"""Which rows were counted before: by their ids, or as a whole file or the beginning of one.

Rows that belong together count once: each cluster is one draw, when it is first seen.

A file is known by the values in its columns (scores, times, ids and the like, not labels that may
be filled in later), whatever it is called, however it is written, whichever other columns were
named before, and in any order of its rows.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.copies import mixed

MOST_IDS = 200_000
"""The latest ids that are kept, eight bytes each."""
_MOST_FILES = 20_000
_TELLING = 20.0
"""Nats in the values of equal rows that make them the same rows under another name: a dozen
different scores, or hundreds of decisions. Ten rows without an alert are like ten others."""
_BITS = 1 << 22
_PLACES = 3


class CountedIds:
    """The latest ids of rows that were counted, as 64-bit hashes in the order they came."""

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = dict.fromkeys(hashes)

    def seen(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which ids are kept."""
        return np.array([each in self._hashes for each in cluster_hashes(ids).tolist()], bool)

    def add(self, ids: NDArray[Any]) -> None:
        """Keep ids; the oldest of too many are forgotten."""
        self._hashes |= dict.fromkeys(cluster_hashes(ids).tolist())
        for oldest in [*islice(self._hashes, max(len(self._hashes) - MOST_IDS, 0))]:
            del self._hashes[oldest]

    def state(self) -> str:
        """A text for JSON."""
        return b64encode(np.array(list(self._hashes), "<i8").tobytes()).decode()

    @staticmethod
    def restore(state: str) -> CountedIds:
        """Read :meth:`state` back."""
        return CountedIds(np.frombuffer(b64decode(state), "<i8").tolist())


def rows_counted(
    files: Iterable[dict[str, Any]], columns: Mapping[str, NDArray[Any]], name: str
) -> int:
    """How many of the first rows were counted before, as one file or as several.

    Args:
        files: What :func:`with_file` has kept.
        columns: Of the file by kind, all of one length.
        name: Of the file.
    """
    rest, counted = {kind: _numbers(np.asarray(each)) for kind, each in columns.items()}, 0
    while found := _beginning(files, rest, None if counted else name):
        rest, counted = {kind: each[found:] for kind, each in rest.items()}, counted + found
    return counted


def _beginning(
    files: Iterable[dict[str, Any]], columns: Mapping[str, NDArray[np.uint64]], name: str | None
) -> int:
    """How many rows the longest file has that these begin with; of any name, if they tell."""
    size = len(next(iter(columns.values())))
    known = sorted((f for f in files if 0 < f["rows"] <= size), key=lambda f: -f["rows"])
    if not known:
        return 0
    first = {kind: each[: known[0]["rows"]] for kind, each in columns.items()}
    sums = {kind: _running_sums(each) for kind, each in first.items()}
    for file in known:
        rows = file["rows"]
        prints = {kind: _prints(each, rows) for kind, each in sums.items()}
        if _same(file["columns"], prints) and (file["name"] == name or _tells(first, rows)):
            return int(rows)
    return 0


def with_file(
    files: list[dict[str, Any]], columns: Mapping[str, NDArray[Any]], name: str, counted: int = 0
) -> list[Any]:
    """The list of files with one more; the oldest of very many are forgotten.

    Rows after the ``counted`` first ones are also kept as a file without a name.
    """
    added = []
    for begin, called in {0: name, counted: None if counted else name}.items():
        numbers = {kind: _numbers(np.asarray(each))[begin:] for kind, each in columns.items()}
        size = len(next(iter(numbers.values())))
        prints = {
            kind: [*_prints(_running_sums(each), size), len(np.unique(each)) > size / 2]
            for kind, each in numbers.items()
        }
        added.append({"name": called, "rows": size, "columns": prints})
    return [*files, *added][-_MOST_FILES:]


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the columns that both have are equal.

    In any order, if one of these columns has many values; few values must have the same order.
    """
    both = [(one[kind], other[kind]) for kind in one if kind in other]
    unsorted = all(a[0] == b[0] for a, b in both)
    return unsorted and (any(a[2] for a, _ in both) or all(a[1] == b[1] for a, b in both))


def _tells(columns: Mapping[str, NDArray[np.uint64]], rows: int) -> bool:
    """Whether the values of these rows are too many to be the same by chance."""
    for column in columns.values():
        counts = np.unique(column[:rows], return_counts=True)[1]
        if -(counts * np.log(counts / rows)).sum() >= _TELLING:
            return True
    return False


def _running_sums(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Up to each row: a sum of hashes, and one that knows the order."""
    places = mixed(np.arange(len(numbers), dtype=np.uint64))
    return np.cumsum(mixed(numbers)), np.cumsum(mixed(numbers ^ places))


def _prints(sums: tuple[NDArray[np.uint64], NDArray[np.uint64]], rows: int) -> list[Any]:
    return [f"{each[rows - 1]:016x}" for each in sums]


def _numbers(column: NDArray[Any]) -> NDArray[np.uint64]:
    """A whole number for each value, equal for equal ones."""
    if column.dtype.kind == "M":
        return column.astype("datetime64[s]").view(np.uint64)
    if column.dtype.kind in "biuf":
        return np.ascontiguousarray(column, np.float64).view(np.uint64)
    return cluster_hashes(column).view(np.uint64)


def cluster_hashes(column: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each cluster, the same in every run."""
    values, which = np.unique(column.astype(str), return_inverse=True)
    digests = (blake2b(str(value).encode(), digest_size=8).digest() for value in values)
    found = [int.from_bytes(digest, "big", signed=True) for digest in digests]
    return np.array(found, np.int64)[which.reshape(-1)]


def one_row_each(clusters: NDArray[np.int64]) -> NDArray[np.intp]:
    """The place of a random row of each cluster, in the order of the rows.

    The hash of a cluster decides which of its rows it is: independent of what the rows are, and
    the same in every run.
    """
    order = np.argsort(clusters, kind="stable")
    names, first, sizes = np.unique(clusters[order], return_index=True, return_counts=True)
    mixed = names.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    drawn = (mixed >> np.uint64(20)) % sizes.astype(np.uint64)
    return np.sort(order[first + drawn.astype(np.intp)])


class SeenClusters:
    """Which clusters were counted before, in bounded memory: a Bloom filter.

    A new cluster is taken for a seen one with probability :attr:`mistaken`, by its hash alone; it
    is left out then, which loses a draw and no validity. After a million clusters that is one in
    seven, after 200,000 one in 400.
    """

    def __init__(self) -> None:
        self.bits = np.zeros(_BITS, bool)
        self.left_out = 0
        """Rows of clusters that were counted before."""

    @staticmethod
    def _places(clusters: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = [clusters >> (21 * i) & (_BITS - 1) for i in range(_PLACES)]
        return np.stack(parts, 1)

    def new(self, clusters: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows belong to clusters that were not seen before; from now on they were."""
        places = self._places(clusters)
        fresh = ~self.bits[places].all(axis=1)
        self.bits[places[fresh]] = True
        return np.asarray(fresh)

    @property
    def mistaken(self) -> float:
        """The probability that a new cluster is taken for a seen one."""
        return float(self.bits.mean() ** _PLACES)

    def state(self) -> tuple[str, int]:
        """A text and a number for JSON."""
        packed = np.packbits(self.bits).tobytes()
        return b64encode(zlib.compress(packed)).decode(), self.left_out

    @staticmethod
    def restore(state: Sequence[Any]) -> SeenClusters:
        """Read :meth:`state` back; a few bytes cannot become gigabytes."""
        found = SeenClusters()
        found.left_out = int(state[1])
        try:
            text = zlib.decompressobj().decompress(b64decode(state[0]), _BITS // 8 + 1)
        except zlib.error as error:
            raise ValueError(f"the clusters seen cannot be read ({error})") from None
        packed = np.frombuffer(text, np.uint8)
        found.bits = np.unpackbits(packed).astype(bool)
        if len(found.bits) != _BITS:
            raise ValueError("the clusters seen are of another length")
        return found
