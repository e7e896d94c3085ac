"""Rows that belong together: each cluster is one draw, and counts when it is first seen."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BITS = 1 << 22
_PLACES = 3


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
