"""Fixed-sequence tests of precision and npv: bounds on the accepted (or the rejected) examples.

``precision >= level`` is not monotone in the threshold. At a fixed threshold it can be tested:
``TP`` of the ``N`` accepted are right, ``P(Bin(N, level) >= TP) <= delta`` proves it. Which
thresholds to test must be fixed without the labels, and each costs a part of ``delta``, unless they
are tested one after the other until one fails.

**A walk** starts where the ``k`` highest scores are accepted, ``k`` fixed in advance, and goes down
through *every* threshold, testing each at the same level ``d``; it stops at the first that fails,
and everything before is proved. It errs with probability at most ``d``, for any law of scores and
labels:

* The start may be in a bad range (precision below the level). Given its threshold, the examples
  above are independent draws from those above it, so the test there is exact.
* The start may be in a good range. An error means that the test was passed at the first bad set
  ``A`` below it, which is a fixed set of scores. The start lies in this range if and only if
  ``#B <= k < #A``, with ``B`` the strictest set of the range, fixed as well and of good
  precision. Given ``#A``, many in ``B`` and many true among ``A`` go together, so ``#B <= k`` makes
  passing at ``A`` no more likely: at most ``d``, for each range that the start may lie in.

There is no second sample and no grid: every rank is a candidate. Several walks from further and
further down share ``delta`` as 0.6, 0.24, 0.096, ...: few alerts prove little, many may be wrong
too often.

Equal scores are accepted together. For the rejected examples (npv) everything is turned around.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from setpoint.certificates.decisions import below
from setpoint.certificates.goals import ACCEPTED, REJECTED, Inequality, Share
from setpoint.certificates.order_statistics import shortage
from setpoint.certificates.proofs import Proof, ThresholdRange
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, CalibrationSample, Subset
from setpoint.certificates.tails import needed, prob_at_least

FIRST, STEP, SHRINK = 2.0, 2.0, 0.4
"""The first walk starts at twice the alerts that could prove anything, the next at twice as many,
with 0.4 of the former's part of delta; chosen by simulation."""
_WALK_CHUNK = 2**16


class PrecisionWalk:
    """Bounds on the accepted or the rejected examples; each is a family of its own."""

    joint: ClassVar[bool] = False

    def takes(self, inequality: Inequality) -> bool:
        """Whether it is about the accepted or the rejected examples."""
        return inequality.kind in (ACCEPTED, REJECTED)

    def prove(self, family: Sequence[Inequality], sample: CalibrationSample, delta: float) -> Proof:
        """The thresholds that all walks together have proved."""
        (inequality,) = family
        assert inequality.share is not None
        walker = Walker(sample, inequality.share)
        proved: dict[Inequality, tuple[float | None, str]]
        proved = {inequality: (inequality.bound.level, "")}
        least = needed(1 - walker.level, delta * (1 - SHRINK))
        if least is None or len(walker.hits) < least:
            note = shortage(inequality, walker.wanted, len(walker.hits), least)
            return Proof(proved, (), (note,), feasible=False)
        ranges: list[ThresholdRange] = []
        reached = 0
        for start, tail in starts(walker.n, walker.level, delta):
            if start > reached:  # else an earlier walk, with more of delta, has come this far
                first, last = walker.walk(start, tail)
                if last:
                    ranges.append(walker.thresholds(first, last))
                    reached = last
        if not ranges:
            return Proof(proved, (), (_best_start(inequality, walker, delta),))
        ends = (map(sample.score_text, (each.low, each.high)) for each in ranges)
        text = ", ".join(map(" to ".join, ends))
        return Proof(proved, tuple(ranges), (f"`{inequality.source}` is proved from {text}",))


def starts(n: int, level: float, delta: float) -> list[tuple[int, float]]:
    """How many examples each walk starts from, and its part of ``delta``."""
    count, tail = FIRST * math.log(delta) / math.log(level), delta * (1 - SHRINK)
    found: list[tuple[int, float]] = []
    while count < n or not found:
        found.append((min(math.ceil(count), n), tail))
        count, tail = STEP * count, SHRINK * tail
    return found


class Walker:
    """Examples in the order of the walk, and how many of them are of the wanted class."""

    def __init__(self, sample: CalibrationSample, share: Share) -> None:
        where = share.subset.where
        self.falling = share.subset.kind != REJECTED
        # the share is of TP among accepted, of FN among rejected: of positives either way
        self.level = 1 - share.limit if share.at_most else share.limit
        self.wanted = Subset(where, NEGATIVES if share.at_most else POSITIVES)
        self.precision = sample.precision
        self.scores = sample.sorted(Subset(where, EVERYONE))
        self.hits = sample.sorted(self.wanted)
        self.n = len(self.scores)

    def nth(self, i: NDArray[Any] | int) -> NDArray[Any]:
        """The score of the ``i``-th example of the walk, from 0."""
        return np.asarray(self.scores[self.n - 1 - np.asarray(i) if self.falling else i])

    def hits_until(self, score: NDArray[Any]) -> NDArray[Any]:
        """How many of the wanted class have been passed once all equal to ``score`` have."""
        if self.falling:
            return np.asarray(len(self.hits) - np.searchsorted(self.hits, score, "left"))
        return np.asarray(np.searchsorted(self.hits, score, "right"))

    def without_ties(self, count: int) -> int:
        """The largest number of examples up to ``count`` that splits no equal scores."""
        if count >= self.n:
            return self.n
        last = self.nth(count)
        rank = int(self.scores.searchsorted(last, "right" if self.falling else "left"))
        return self.n - rank if self.falling else rank

    def walk(self, start: int, tail: float) -> tuple[int, int]:
        """The first and the last number of examples at which the test is passed; 0 if nowhere."""
        first = self.without_ties(start)
        if first == 0:
            return 0, 0
        at, last = first - 1, 0
        while at < self.n:
            i = np.arange(at, min(at + _WALK_CHUNK, self.n))
            ends = i[(i == self.n - 1) | (self.nth(np.minimum(i + 1, self.n - 1)) != self.nth(i))]
            hits = self.hits_until(self.nth(ends))
            failed = first_failure(hits, ends + 1, self.level, tail)
            if failed < len(ends):
                return (first, int(ends[failed - 1]) + 1) if failed else (first, last)
            last = int(ends[-1]) + 1 if len(ends) else last
            at += _WALK_CHUNK
        return first, last

    def thresholds(self, first: int, last: int) -> ThresholdRange:
        """The thresholds that accept (or reject) from ``first`` to ``last`` examples."""
        start, end = float(self.nth(first - 1)), float(self.nth(min(last, self.n - 1)))
        if self.falling:
            low = end if last < self.n else -math.inf
            return ThresholdRange(low, below(start, self.precision))
        return ThresholdRange(start, below(end, self.precision) if last < self.n else end)


def first_failure(hits: NDArray[Any], n: NDArray[Any], level: float, tail: float) -> int:
    """The first of several tests of ``share >= level`` that fails; their number if none does.

    Chernoff's bound ``exp(-n KL)`` settles almost all of them without the exact tail.
    """
    share = hits / n
    hopeless = np.flatnonzero(share <= level)
    stop = int(hopeless[0]) if len(hopeless) else len(n)
    hits, n, share = hits[:stop], n[:stop], share[:stop]
    distance = xlogy(share, share / level) + xlogy(1 - share, (1 - share) / (1 - level))
    open_ = np.flatnonzero(n * distance < -math.log(tail))
    failed = open_[prob_at_least(hits[open_], n[open_], level) > tail]
    return int(failed[0]) if len(failed) else stop


def _best_start(inequality: Inequality, walker: Walker, delta: float) -> str:
    """What the walks found at their starts, when none of them passed."""
    seen = []
    for start, _ in starts(walker.n, walker.level, delta):
        count = walker.without_ties(start)
        if count:
            hits = int(walker.hits_until(walker.nth(count - 1)))
            seen.append((hits / count, hits, count))
    if not seen:
        return f"`{inequality.source}`: the scores are tied too much to accept only a few examples"
    _, hits, count = max(seen)
    side = "highest" if walker.falling else "lowest"
    noun = walker.wanted.kind[:-1] if hits == 1 else walker.wanted.kind
    return (
        f"`{inequality.source}` is not proved anywhere: at best, of the {count:,} {side} scores "
        f"{hits:,} are {noun}"
    )
