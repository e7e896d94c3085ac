"""Rows that are there twice, and tables that were certified before.

Rows are compared by 64-bit digests of their features. A calibration row that is a copy of a
training row is no new case: the certificate would be about rows that the classifier has seen. In
tables of few different values equal rows are no copies. So a warning needs a column whose values
tell rows apart, and more pairs of equal rows than independent columns would give by chance. Of
scores alone it is looked at how often each occurs; of very many, of a sample of them.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats

AnyArray = NDArray[Any]
Digests = NDArray[np.uint64]
Counts64 = NDArray[np.int64]
TOP_BIT = np.uint64(1 << 63)
MOST_SAMPLED = 2**20
"""Different scores by which copies are looked for."""
_SAMPLE = 1000
"""Rows by which the chance of equal values in a column is estimated."""
_COINCIDENCE = 0.01
"""Equal rows are copies if chance explains less than this share of them."""
_MOST_TABLES = 1000
_tried: dict[str, set[str]] = {}  # of each table in this process: what was certified on it


class CopiedRowsWarning(UserWarning):
    """Rows to certify on are copies of rows to train on."""


def row_digests(X: Any) -> Digests:
    """A number for each row, equal for equal rows.

    Examples:
        >>> first, second, third = row_digests([[0.0, 1.5], [-0.0, 1.5], [1.5, 0.0]])
        >>> bool(first == second), bool(first == third)
        (True, False)
    """
    if hasattr(X, "tocsr"):
        rows = X.tocsr()
        rows.sum_duplicates()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return _hashed((rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in ends)
    if hasattr(X, "iloc") and np.ndim(X) == 2:
        columns = [np.asarray(column) for _, column in X.items()]
    else:
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths
            return _hashed(X)
        columns = list(array.reshape(len(array), -1).T)
    found = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    for column in columns:
        found = mixed(found * np.uint64(3) + _words_of(column))
    return found


def _words_of(column: AnyArray) -> Digests:
    if column.dtype.kind in "biu":
        return column.astype(np.int64).view(np.uint64)
    if column.dtype.kind == "f":
        return (column.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    return _hashed(column.tolist())


def _hashed(values: Any) -> Digests:
    """The same in every process, unlike Python's hash."""
    texts = [repr(value) for value in values]
    known = {text: hashlib.blake2b(text.encode(), digest_size=8).digest() for text in {*texts}}
    return np.frombuffer(b"".join(known[text] for text in texts), np.uint64)


def mixed(words: Digests) -> Digests:
    """Words whose bits depend on all bits of the given ones (the finalizer of splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


class Copies(NamedTuple):
    """Rows to certify on that are copies of rows to train on: how many, and one pair of places."""

    rows: int
    certified: int
    train: int


def copies_between(X: Any, train: Digests, certified: Digests) -> Copies | None:
    """The copies between two parts of a table, or None if chance explains them.

    Args:
        X: Rows of the table, of which the first tell how likely equal rows are by chance.
        train: Digests of the rows to train on.
        certified: Digests of the rows to certify on.

    Examples:
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> digests = row_digests(X)
        >>> copies_between(X, digests[:80], digests[[3, 90, 91]])
        Copies(rows=1, certified=0, train=3)
        >>> copies_between(X, digests[:80], digests[80:]) is None
        True
    """
    order = np.argsort(train, kind="stable")
    low, high = (np.searchsorted(train[order], certified, side) for side in ("left", "right"))
    pairs = high - low
    copied = np.flatnonzero(pairs)
    if not len(copied):
        return None
    if _chance_of_equal_rows(X) * len(train) * len(certified) > _COINCIDENCE * pairs.sum():
        return None
    return Copies(len(copied), int(copied[0]), int(order[low[copied[0]]]))


def warn_of_copies(X: Any, digests: Digests, train: AnyArray, certified: AnyArray) -> None:
    """Warn if rows to certify on are copies of rows to train on."""
    found = copies_between(X, digests[train], digests[certified])
    if found is not None:
        row, twin = certified[found.certified], train[found.train]
        warnings.warn(
            f"{found.rows:,} of {len(certified):,} rows to certify on are copies of rows to train "
            f"on (row {row} of row {twin}, say): the certificate is about rows that the classifier "
            "has seen. Leave copies out, or keep them together: fit(X, y, clusters=...).",
            CopiedRowsWarning,
            stacklevel=3,
        )


def _chance_of_equal_rows(X: Any) -> float:
    """The chance that two rows are equal, if columns were independent.

    It is 1 if no column has values that tell most of the different rows apart, and 0 for texts and
    sparse rows.
    """
    if hasattr(X, "tocsr"):
        return 0.0
    rows = np.asarray(X.iloc[:_SAMPLE] if hasattr(X, "iloc") else X[:_SAMPLE])
    if rows.ndim == 1:
        return 0.0
    n, chance, most = len(rows), 1.0, 0
    for column in rows.reshape(n, -1).T:
        column = column.astype(str) if column.dtype == object else column
        counts = np.unique(column, return_counts=True)[1]
        most = max(most, len(counts))
        chance *= float((counts * (counts - 1.0)).sum()) / max(n * (n - 1), 1)
    return 1.0 if 2 * most < len(np.unique(row_digests(rows))) else chance


def fingerprint_of_table(digests: Digests, labels: AnyArray) -> str:
    """A fingerprint of rows and labels in their order; certificates of one table share it."""
    return hashlib.sha256(digests.tobytes() + labels.tobytes()).hexdigest()[:16]


def count_tries(table: str, scores: AnyArray) -> int:
    """How many different certificates this process has made of rows of a table, with this one.

    Args:
        table: Its fingerprint.
        scores: Of the rows that certify: other rows or another model are another try.
    """
    if table not in _tried and len(_tried) >= _MOST_TABLES:
        del _tried[next(iter(_tried))]
    tries = _tried.setdefault(table, set())
    tries.add(hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest())
    return len(tries)


def multiplicities_of(scores: NDArray[Any], rows: int) -> Counts64:
    """How often each of a sample of the different scores occurs; ``scores`` are sorted.

    Args:
        scores: Of one category.
        rows: How many rows all categories have.
    """
    if rows > MOST_SAMPLED:
        scores = scores[in_sample(keys_of(scores.astype(np.float64)), sample_level(rows))]
    if not len(scores):
        return np.empty(0, np.int64)
    edges = np.concatenate([[True], scores[1:] != scores[:-1], [True]])
    return np.diff(np.flatnonzero(edges))


def in_sample(keys: Digests, level: int) -> NDArray[np.bool_]:
    """Which keys are in a sample of about ``level / 2^32`` of the different ones."""
    if level >= 2**32:
        return np.ones(len(keys), bool)
    mixed = (keys ^ (keys >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return np.asarray(mixed >> np.uint64(32) < np.uint64(level))


def sample_level(rows: int) -> int:
    """The level at which a sample has about :data:`MOST_SAMPLED` of ``rows`` scores."""
    return 2**32 if rows <= MOST_SAMPLED else 2**32 * MOST_SAMPLED // rows


def keys_of(scores: Floats) -> Digests:
    """Whole numbers in the order of the scores; -0.0 is 0.0."""
    bits = (scores + 0.0).view(np.uint64)
    return np.where(bits & TOP_BIT, ~bits, bits | TOP_BIT)
