"""Thresholds and how they came about, which decides what a count at them proves.

Decisions are ``score > threshold``. Whoever counts at a threshold that the data chose must say how:

* **Fixed before the data** (or chosen by other examples): ``k`` of ``n`` accepted is binomial.
* **A rank fixed before the data**, ``x`` the r-th largest score of the *anchor* part. Its own
  accepted share follows ``Beta`` with the same quantiles that Clopper and Pearson use, so its
  bounds hold; ties only push ``P(S > x)`` down and ``P(S >= x)`` up, hence the smaller count below
  and the larger one above. Parts that the anchor does not overlap were not asked: binomial. For a
  part inside the anchor (negatives of a group, the rank among all negatives), fix everybody else:
  the count falls and the share falls as ``x`` rises, so a lower bound is wrong exactly if ``x``
  passes one fixed point, and at that point the count is binomial; one wrong bound, one tail.
* **Chosen** by looking: bounds that hold at all thresholds at once, made of Clopper-Pearson bounds
  at a grid of ranks. Between two ranks the share lies between its values at the two, so the count
  is rounded outwards to the grid; the tail is divided by its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.sample import EVERYONE, POSITIVES, PRIOR, Part, Sample

RATIO = 1.15
"""Neighbours in the grid of ranks, counted from either end."""


@dataclass(frozen=True)
class Place:
    """A threshold: accept scores above ``score``, or from ``score`` on if ``inclusive``."""

    score: float
    inclusive: bool = False
    anchor: Part | None = None
    chosen: bool = False
    tests: int = 1
    """Among how many places of this kind it was picked."""

    def threshold(self, sample: Sample) -> float:
        """What scores must exceed."""
        return sample.below(self.score) if self.inclusive else self.score


class Evidence(NamedTuple):
    """How many of ``n`` were accepted, for bounds from below and from above."""

    low: int
    high: int
    n: int
    tests: int


def evidence(sample: Sample, part: Part, place: Place) -> Evidence:
    """What ``sample`` says about the share of ``part`` accepted at ``place``."""
    if part.kind == PRIOR:
        count = sample.size(Part(part.where, POSITIVES))
        return Evidence(count, count, sample.size(Part(part.where, EVERYONE)), 1)
    n = sample.size(part)
    over, reach = (int(f(part, place.score)) for f in (sample.over, sample.reaching))
    accepted = reach if place.inclusive else over
    if place.chosen:
        grid = ranks(n)
        low = int(grid[np.searchsorted(grid, accepted, "right") - 1])
        return Evidence(low, int(grid[np.searchsorted(grid, accepted)]), n, len(grid))
    if place.anchor is None or not part.overlaps(place.anchor):
        return Evidence(accepted, accepted, n, place.tests)
    own = part == place.anchor
    low, high = over + (own and place.inclusive), reach - (own and not place.inclusive)
    return Evidence(low, high, n, place.tests)


def scaled(seen: Evidence, factor: float) -> Evidence:
    """The same shares of so many times as many examples."""
    low, high, n = (round(factor * count) for count in seen[:3])
    return Evidence(low, high, n, seen.tests)


@lru_cache(maxsize=256)
def ranks(n: int) -> NDArray[np.int64]:
    """A grid of counts from 0 to ``n``, denser towards both ends."""
    steps = int(np.log(max(n, 2) / 2) / np.log(RATIO)) + 1
    half = np.unique(np.ceil(RATIO ** np.arange(steps)).astype(np.int64))
    half = half[half <= n // 2 + 1]
    return np.unique(np.concatenate([[0, n], half[half <= n], n - half[half <= n]]))
