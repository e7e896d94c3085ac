"""Order statistics of more scores than fit into memory, by histograms of their bits.

The bits of a floating-point number, read as a whole number, are in the order of the numbers (after
a turn of the negative ones). So the first 16 bits of all scores, counted in 65,536 bins, say in
which bin the score of a rank lies; the next 16 bits of those in that bin say where in it, and so
on: two passes for single precision, four for double, half a megabyte, and the very score at the
end, however they are spread. Several processes add up their counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from setpoint.distributed.ranks import sum_tensors, workers

_DIGIT = 16
_DIGITS = 2**_DIGIT
_WORD_OF = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}

Read = Callable[[], Iterable[NDArray[Any]]]
"""Gives the scores again and again, each time the same, some at a time."""


class Selected(NamedTuple):
    """A score, how many there are in all, above it, and at or above it."""

    score: float
    size: int
    above: int
    reaching: int


def select(
    read: Read, rank: Callable[[int], int | None], group: dist.ProcessGroup | None = None
) -> Selected | int:
    """The score of a rank, 0 being the highest, among the scores of all processes.

    Args:
        read: This process's scores; all in single or all in double precision.
        rank: The rank wanted, given how many there are; None or what is not there: no score.
        group: The processes; by default all.

    Returns:
        The score with its counts; only the number of scores if no rank is wanted.

    Raises:
        ValueError: A score is not finite.

    Examples:
        >>> scores = np.array([0.5, 2.0, -1.0, 2.0, 0.0])
        >>> select(lambda: [scores[:2], scores[2:]], lambda n: 2)
        Selected(score=0.5, size=5, above=2, reaching=3)
    """
    prefix, known, above, count = 0, 0, 0, -1
    place, bits = 0, 32
    while known < bits:
        bins, widths, broken = _digit_counts(read, prefix, known)
        totals = np.append(bins, [32 in widths, 64 in widths, broken])
        if workers(group) > 1:
            totals = sum_tensors(torch.from_numpy(totals), group).numpy()
        bins, (single, double, broken) = totals[:_DIGITS], totals[_DIGITS:]
        if broken:
            raise ValueError(f"Scores must be finite; {int(broken):,} of them are not.")
        if single and double:
            raise TypeError("Scores must be all float32 or all float64; got both.")
        bits = 64 if double else 32
        if count < 0:
            count = int(bins.sum())
            wanted = rank(count)
            if wanted is None or not 0 <= wanted < count:
                return count
            place = wanted
        higher = np.append(np.cumsum(bins[::-1])[::-1], 0)  # how many lie in this bin or above
        digit = int(np.searchsorted(-higher, -place, "left")) - 1
        above += int(higher[digit + 1])
        place -= int(higher[digit + 1])
        prefix, known = prefix << _DIGIT | digit, known + _DIGIT
    return Selected(_score_of_key(prefix, bits), count, above, above + int(bins[digit]))


def _digit_counts(read: Read, prefix: int, known: int) -> tuple[NDArray[np.int64], set[int], int]:
    """Counts of the next bits of scores that begin with ``prefix``; widths; how many are none."""
    bins, widths, broken = np.zeros(_DIGITS, np.int64), set(), 0
    for scores in read():
        word = _WORD_OF.get(scores.dtype)
        if word is None:
            raise TypeError(f"Scores must be float32 or float64; got {scores.dtype}.")
        width = 8 * scores.dtype.itemsize
        widths.add(width)
        broken += int((~np.isfinite(scores)).sum()) if not known else 0
        keys = _keys(scores, word)
        if known:
            keys = keys[keys >> word(width - known) == word(prefix)]
        digits = (keys >> word(width - known - _DIGIT)).astype(np.uint16)
        bins += np.bincount(digits, minlength=_DIGITS)
    return bins, widths, broken


def _keys(scores: NDArray[Any], word: Any) -> NDArray[Any]:
    """Whole numbers in the order of the scores; -0.0 is 0.0."""
    bits = (scores + scores.dtype.type(0)).view(word)
    top = word(1) << word(8 * scores.dtype.itemsize - 1)
    keys: NDArray[Any] = np.where(bits & top, ~bits, bits | top)
    return keys


def _score_of_key(key: int, bits: int) -> float:
    """The score of a key."""
    word = np.uint32 if bits == 32 else np.uint64
    top = 1 << (bits - 1)
    turned = key ^ top if key & top else key ^ (2 * top - 1)
    return float(np.array([turned], word).view(np.float32 if bits == 32 else np.float64)[0])
