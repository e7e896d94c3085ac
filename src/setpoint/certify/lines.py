"""Examples in the order in which a walk meets them, and the tests on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from setpoint.certify.forms import REJECTED, Share
from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, Part
from setpoint.certify.samples import Sample
from setpoint.certify.tails import at_least

CHUNK = 2**16
Scores = NDArray[Any]
Ints = NDArray[Any]


@dataclass(frozen=True)
class Stretch:
    """Thresholds from ``low`` to ``high``, both included, at which a bound is proved."""

    low: float
    high: float


class Line:
    """Examples in the order in which a walk meets them, and how many of them are as wanted."""

    def __init__(self, sample: Sample, share: Share) -> None:
        where = share.part.where
        self.falling = share.part.kind != REJECTED
        # the share is of TP among accepted, of FN among rejected: of positives either way
        self.level = 1 - share.limit if share.at_most else share.limit
        self.kind = Part(where, NEGATIVES if share.at_most else POSITIVES)
        self.below = sample.below
        self.scores = sample.sorted(Part(where, EVERYONE))
        self.hits = sample.sorted(self.kind)
        self.n = len(self.scores)

    def nth(self, i: Ints | int) -> Scores:
        """The score of the ``i``-th example met, from 0."""
        return self.scores[self.n - 1 - np.asarray(i)] if self.falling else self.scores[i]

    def met(self, scores: Scores, score: Scores) -> Ints:
        """How many of ``scores`` are met once all equal to ``score`` are."""
        if self.falling:
            return len(scores) - np.searchsorted(scores, score, "left")
        return np.searchsorted(scores, score, "right")

    def whole(self, count: int) -> int:
        """The largest number of examples up to ``count`` that splits no equal scores."""
        if count >= self.n:
            return self.n
        last = self.nth(count)
        place = int(self.scores.searchsorted(last, "right" if self.falling else "left"))
        return self.n - place if self.falling else place

    def walk(self, start: int, tail: float) -> tuple[int, int]:
        """The first and the last number of examples at which the test is passed; 0 if nowhere."""
        first = last = self.whole(start)
        if first == 0:
            return 0, 0
        at, last = first - 1, 0
        while at < self.n:
            i = np.arange(at, min(at + CHUNK, self.n))
            ends = i[(i == self.n - 1) | (self.nth(np.minimum(i + 1, self.n - 1)) != self.nth(i))]
            hits = self.met(self.hits, self.nth(ends))
            failed = fails(hits, ends + 1, self.level, tail)
            if failed < len(ends):
                return (first, int(ends[failed - 1]) + 1) if failed else (first, last)
            last = int(ends[-1]) + 1 if len(ends) else last
            at += CHUNK
        return first, last

    def stretch(self, first: int, last: int) -> Stretch:
        """The thresholds that accept (or reject) from ``first`` to ``last`` examples."""
        if self.falling:
            low = float(self.nth(last)) if last < self.n else -math.inf
            return Stretch(low, self.below(float(self.nth(first - 1))))
        high = self.below(float(self.nth(last))) if last < self.n else float(self.nth(last - 1))
        return Stretch(float(self.nth(first - 1)), high)


def fails(hits: Ints, n: Ints, level: float, tail: float) -> int:
    """The first of several tests of ``share >= level`` that fails; their number if none does.

    Chernoff's bound ``exp(-n KL)`` settles almost all of them without the exact tail.
    """
    share = hits / n
    hopeless = np.flatnonzero(share <= level)
    stop = int(hopeless[0]) if len(hopeless) else len(n)
    hits, n, share = hits[:stop], n[:stop], share[:stop]
    distance = xlogy(share, share / level) + xlogy(1 - share, (1 - share) / (1 - level))
    open_ = np.flatnonzero(n * distance < -math.log(tail))
    failed = open_[at_least(hits[open_], n[open_], level) > tail]
    return int(failed[0]) if len(failed) else stop
