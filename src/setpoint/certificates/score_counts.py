"""Order statistics of more scores than fit into memory, exactly, by histograms of their bits.

The bits of a floating-point number, read as a whole number, are in the order of the numbers (after
a turn of the negative ones). Scores are thus sorted into 65,536 bins by their first 16 bits. Where
a score or a count is asked for, and the bin there is large, its scores are sorted by their next 16
bits, and so on; once neighbouring bins hold at most :data:`MOST_SCORES` together, these are read
into memory. Each of these steps is one pass over all scores, and is remembered.

Scores come in *categories* (positives and negatives, of each group). :class:`StreamedScores` is
what an array of the sorted scores of some categories would be: its length, its entries, and
``searchsorted``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.certificates.copies import TOP_BIT, Counts64, in_sample, keys_of, sample_level

MOST_SCORES = 2**21
"""Scores that are read into memory at a time."""
_DIGIT, _BITS = 16, 64
_BINS = 2**_DIGIT
_MOST_LEAVES = 2

Keys = NDArray[np.uint64]


class BinCounts(NamedTuple):
    """Count scores by the 16 bits behind the first ``known`` bits, which are ``prefix``."""

    prefix: int
    known: int

    def of(self, keys: Keys, codes: Counts64, categories: int) -> Counts64:
        """Counts by category and bin."""
        if self.known:
            inside = keys >> np.uint64(_BITS - self.known) == np.uint64(self.prefix)
            keys, codes = keys[inside], codes[inside]
        digits = (keys >> np.uint64(_BITS - self.known - _DIGIT)).astype(np.int64) & (_BINS - 1)
        found = np.bincount(codes * _BINS + digits, minlength=categories * _BINS)
        return found.reshape(categories, _BINS)

    @staticmethod
    def merged(answers: list[Any]) -> Any:
        """The answer of all rows from those of their parts."""
        return sum(answers[1:], start=answers[0])


class KeyRange(NamedTuple):
    """Scores whose key is ``low`` to ``high``, both included, by category and sorted."""

    low: int
    high: int

    def of(self, keys: Keys, codes: Counts64, categories: int) -> list[Keys]:
        """The keys of each category."""
        inside = (keys >= np.uint64(self.low)) & (keys <= np.uint64(self.high))
        keys, codes = keys[inside], codes[inside]
        return [keys[codes == category] for category in range(categories)]

    @staticmethod
    def merged(answers: list[Any]) -> Any:
        """The answer of all rows from those of their parts."""
        return [np.concatenate(column) for column in zip(*answers, strict=True)]


class Multiplicities(NamedTuple):
    """How often each of a sample of the different scores occurs, by category.

    All rows of a score are in the sample or none is: its hash decides.
    """

    level: int

    def of(self, keys: Keys, codes: Counts64, categories: int) -> list[tuple[Keys, Counts64]]:
        """The different keys of each category, and how often each occurs."""
        inside = in_sample(keys, self.level)
        keys, codes = keys[inside], codes[inside]
        mine = (keys[codes == category] for category in range(categories))
        return [np.unique(own, return_counts=True) for own in mine]

    @staticmethod
    def merged(answers: list[Any]) -> Any:
        """The answer of all rows from those of their parts."""
        return [_added(column) for column in zip(*answers, strict=True)]


Query = BinCounts | KeyRange | Multiplicities
Ask = Callable[[Query], Any]
"""Answers a query about all rows, in one pass."""


def _added(pairs: tuple[tuple[Keys, Counts64], ...]) -> tuple[Keys, Counts64]:
    keys, places = np.unique(np.concatenate([key for key, _ in pairs]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([n for _, n in pairs]), len(keys))
    return keys, counts.astype(np.int64)


def scores_of(keys: Keys) -> Floats:
    """The scores of keys."""
    bits = np.where(keys & TOP_BIT, keys ^ TOP_BIT, ~keys)
    return np.ascontiguousarray(bits).view(np.float64)


@dataclass
class Leaf:
    """The scores in a range of keys, and how many of each category lie below it."""

    low: int
    high: int
    below: Counts64
    inside: Counts64
    keys: list[Keys] | None
    """By category; None if all are equal."""
    _merged: dict[tuple[int, ...], Keys] = field(default_factory=dict)

    def sorted_keys(self, categories: tuple[int, ...]) -> Keys:
        """The keys of some categories, from low to high."""
        if categories not in self._merged:
            assert self.keys is not None
            self._merged[categories] = np.sort(np.concatenate([self.keys[c] for c in categories]))
        return self._merged[categories]


class ScoreCounts:
    """Scores that can only be asked about; what was asked is remembered.

    Args:
        ask: Makes one pass over all scores.
        categories: How many there are.
    """

    def __init__(self, ask: Ask, categories: int) -> None:
        self._ask = ask
        self._nodes: dict[BinCounts, Counts64] = {}
        self._leaves: list[Leaf] = []
        self._copies: list[tuple[Keys, Counts64]] = []
        self.first_bits: Counts64 = self._node(BinCounts(0, 0))
        self.sizes: Counts64 = self.first_bits.sum(1)

    def multiplicities(self, categories: tuple[int, ...]) -> Counts64:
        """How often each of a sample of the different scores of some categories occurs."""
        if not self._copies:
            self._copies = self._ask(Multiplicities(sample_level(int(self.sizes.sum()))))
        return _added(tuple(self._copies[category] for category in categories))[1]

    def leaf_of_key(self, key: int) -> Leaf:
        """The leaf with a key."""
        for leaf in self._leaves:
            if leaf.low <= key <= leaf.high:
                return leaf
        return self._descend(lambda node, _, known: key >> (_BITS - known - _DIGIT) & (_BINS - 1))

    def leaf_of_rank(self, categories: tuple[int, ...], rank: int) -> Leaf:
        """The leaf with the score that ``rank`` others of some categories lie below."""
        which = list(categories)
        for leaf in self._leaves:
            first = int(leaf.below[which].sum())
            if first <= rank < first + int(leaf.inside[which].sum()):
                return leaf

        def digit(node: Counts64, below: Counts64, known: int) -> int:
            ends = np.cumsum(node[which].sum(0)) + int(below[which].sum())
            return int(np.searchsorted(ends, rank, "right"))

        return self._descend(digit)

    def _node(self, query: BinCounts) -> Counts64:
        if query not in self._nodes:
            self._nodes[query] = self._ask(query)
        return self._nodes[query]

    def _descend(self, choose: Callable[[Counts64, Counts64, int], int]) -> Leaf:
        """From the first bits on, into the bin that ``choose`` names, until it fits in memory."""
        query, below = BinCounts(0, 0), np.zeros(len(self.sizes), np.int64)
        while True:
            node = self._node(query)
            digit = choose(node, below, query.known)
            last = query.known + _DIGIT == _BITS
            if last or int(node[:, digit].sum()) <= MOST_SCORES:
                break
            below = below + node[:, :digit].sum(1)
            query = BinCounts(query.prefix << _DIGIT | digit, query.known + _DIGIT)
        leaf = self._leaf(query, node, digit, below)
        self._leaves = [leaf, *self._leaves[: _MOST_LEAVES - 1]]
        return leaf

    def _leaf(self, query: BinCounts, node: Counts64, digit: int, below: Counts64) -> Leaf:
        """The scores of a bin and of as many neighbouring bins as fit into memory."""
        totals = node.sum(0)
        start, stop, held = digit, digit, int(totals[digit])
        if held <= MOST_SCORES:
            before = np.cumsum(totals[:digit][::-1])
            start = digit - int(np.searchsorted(before, (MOST_SCORES - held) // 2, "right"))
            held = int(totals[start : digit + 1].sum())
            after = np.cumsum(totals[digit + 1 :])
            stop = digit + int(np.searchsorted(after, MOST_SCORES - held, "right"))
        rest = _BITS - query.known - _DIGIT
        low = (query.prefix << _DIGIT | start) << rest
        high = ((query.prefix << _DIGIT | stop) << rest) + (1 << rest) - 1
        below = below + node[:, :start].sum(1)
        inside = node[:, start : stop + 1].sum(1)
        equal = rest == 0 and start == stop
        keys = None if equal else self._ask(KeyRange(low, high))
        return Leaf(low, high, below, inside, keys)


class StreamedScores:
    """The scores of some categories from low to high, as if they were in a sorted array."""

    dtype = np.dtype(np.float64)
    ndim = 1

    def __init__(self, counts: ScoreCounts, categories: tuple[int, ...]) -> None:
        self._counts, self._categories = counts, categories
        self._size = int(counts.sizes[list(categories)].sum())

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, places: Any) -> Any:
        """The scores at places: a whole number or an array of them."""
        at = np.atleast_1d(np.asarray(places, np.int64))
        at = np.where(at < 0, at + self._size, at)
        if len(at) and (at.min() < 0 or at.max() >= self._size):
            raise IndexError(f"There are {self._size:,} scores.")
        found = np.empty(len(at), np.uint64)
        left = np.ones(len(at), bool)
        while left.any():
            leaf = self._counts.leaf_of_rank(self._categories, int(at[left][0]))
            first, count = self._ranks(leaf)
            mine = left & (at >= first) & (at < first + count)
            if leaf.keys is None:
                found[mine] = leaf.low
            else:
                found[mine] = leaf.sorted_keys(self._categories)[at[mine] - first]
            left &= ~mine
        scores = scores_of(found)
        return scores[0] if np.ndim(places) == 0 else scores

    def searchsorted(self, scores: Any, side: str = "left", sorter: None = None) -> Any:
        """How many scores lie below each of ``scores``, or up to it (``"right"``)."""
        given = np.asarray(scores, np.float64)
        flat = given.reshape(-1)
        found = np.where(flat == np.inf, self._size, 0)
        left, keys = np.isfinite(flat), keys_of(flat)
        while left.any():
            leaf = self._counts.leaf_of_key(int(keys[left][0]))
            first, count = self._ranks(leaf)
            mine = left & (keys >= np.uint64(leaf.low)) & (keys <= np.uint64(leaf.high))
            if leaf.keys is None:
                found[mine] = first + (count if side == "right" else 0)
            else:
                own = leaf.sorted_keys(self._categories)
                found[mine] = first + np.searchsorted(own, keys[mine], side)  # type: ignore[call-overload]
            left &= ~mine
        return found.reshape(given.shape) if given.ndim else int(found[0])

    def _ranks(self, leaf: Leaf) -> tuple[int, int]:
        which = list(self._categories)
        return int(leaf.below[which].sum()), int(leaf.inside[which].sum())
