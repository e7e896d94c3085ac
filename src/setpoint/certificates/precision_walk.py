"""Examples in the order in which a walk meets them, and the tests on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from setpoint.certificates.goals import REJECTED, Atom, Share
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, Part, Sample, have
from setpoint.certificates.tails import at_least, needed

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


# Precision and its mirror image: bounds on the accepted (or on the rejected) examples alone.
#
# ``precision >= level`` does not move one way with the threshold. At a fixed threshold it can be
# tested: ``TP`` of the ``N`` accepted are right, ``P(Bin(N, level) >= TP) <= delta`` proves it.
# Which thresholds to test must be fixed without the labels, and each costs a part of ``delta``,
# unless they are tested one after the other until one fails.
#
# **A walk** starts where the ``k`` highest scores are accepted, ``k`` fixed in advance, and goes
# down through *every* threshold, testing each at the same level ``d``; it stops at the first that
# fails, and everything before is proved. It errs with probability at most ``d``, for any law of
# scores and labels:
#
# * The start may be in a bad stretch (precision below the level). Given its threshold, the examples
#   above are independent draws from those above it, so the test there is exact.
# * The start may be in a good stretch. An error means that the test was passed at the first bad set
#   ``A`` below it, which is a fixed set of scores. The start lies in this stretch if and only if
#   ``#B <= k < #A``, with ``B`` the strictest set of the stretch, fixed as well and of good
# precision. Given ``#A``, many in ``B`` and many true among ``A`` go together, so ``#B <= k`` makes
# passing at ``A`` no more likely: at most ``d``, for each stretch that the start may lie in.
#
# No second sample and no grid: every rank is a candidate. Several walks from further and further
# down share ``delta`` as 0.6, 0.24, 0.096, ...: few alerts prove little, many may be wrong too
# often.
#
# Equal scores are accepted together. For the rejected examples (npv) everything is turned around.


FIRST, STEP, SHRINK = 2.0, 2.0, 0.4
"""The first walk starts at twice the alerts that could prove anything, the next at twice as many,
with 0.4 of the former's part of delta; chosen by simulation."""


@dataclass(frozen=True)
class Walked:
    """Where a bound is proved; if nowhere, what is missing."""

    stretches: tuple[Stretch, ...]
    note: str
    feasible: bool


def walk(atom: Atom, sample: Sample, delta: float) -> Walked:
    """All walks of a bound on the accepted or the rejected examples."""
    share = atom.share
    assert share is not None
    line = Line(sample, share)
    least = needed(1 - line.level, delta * (1 - SHRINK))
    if least is None:
        note = f"no number of examples can prove `{atom.source}`: bound it away from the end"
        return Walked((), note, False)
    if len(line.hits) < least:
        note = f"`{atom.source}` needs {have(least, line.kind)}, you have {len(line.hits):,}"
        return Walked((), note, False)
    stretches: list[Stretch] = []
    reached = 0
    for start, tail in starts(line.n, line.level, delta):
        if start > reached:  # else an earlier walk, with more of delta, has come this far
            first, last = line.walk(start, tail)
            if last:
                stretches.append(line.stretch(first, last))
                reached = last
    return Walked(tuple(stretches), "" if stretches else _tried(atom, line, delta), True)


def starts(n: int, level: float, delta: float) -> list[tuple[int, float]]:
    """How many examples each walk starts from, and its part of ``delta``."""
    count, tail = FIRST * math.log(delta) / math.log(level), delta * (1 - SHRINK)
    found: list[tuple[int, float]] = []
    while count < n or not found:
        found.append((min(math.ceil(count), n), tail))
        count, tail = STEP * count, SHRINK * tail
    return found


def _tried(atom: Atom, line: Line, delta: float) -> str:
    """What the walks found at their starts."""
    seen = []
    for start, _ in starts(line.n, line.level, delta):
        count = line.whole(start)
        if count:
            hits = int(line.met(line.hits, line.nth(count - 1)))
            seen.append((hits / count, hits, count))
    if not seen:
        return f"`{atom.source}`: the scores are tied too much to accept only a few examples"
    _, hits, count = max(seen)
    side = "highest" if line.falling else "lowest"
    noun = line.kind.kind[:-1] if hits == 1 else line.kind.kind
    return (
        f"`{atom.source}` is not proved anywhere: at best, of the {count:,} {side} scores {hits:,} "
        f"are {noun}"
    )
