"""What is proved at a threshold, and the interface of methods that find provable thresholds.

Decisions are ``score > threshold``. What a count at a threshold proves depends on how the threshold
came about:

* **Fixed before the data** (or chosen by other examples): ``k`` of ``n`` accepted is binomial.
* **A rank fixed before the data**, ``x`` the r-th largest score of the *anchor* subset. Its own
  accepted share follows ``Beta`` with the same quantiles that Clopper and Pearson use, so its
  bounds hold; ties only push ``P(S > x)`` down and ``P(S >= x)`` up, hence the smaller count below
  and the larger one above. Counts in subsets that do not overlap the anchor are binomial. For a
  subset inside the anchor (negatives of a group, the rank among all negatives), fix all other
  examples: of ``r`` in all, more are its own the higher ``x`` is, and the share falls. So a lower
  bound is wrong exactly if ``x`` passes one fixed point, where the count is binomial. For a subset
  around the anchor (everyone, the rank among negatives) bounds were wrong no more often than the
  tail says in simulations with labels that depend on the score in any way.
  The threshold is then moved half way to the next score, so that rounding decides nothing. The
  neighbour may be an example of another subset, whose share between the two is unknown; so its
  count is taken one smaller (or larger, if the threshold moves down).
* **Chosen** by looking: bounds that hold at all thresholds at once, made of Clopper-Pearson bounds
  at a grid of ranks. Between two ranks the share lies between its values at the two, so the count
  is rounded outwards to the grid; the tail is divided by its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.certificates.decisions import below, halfway
from setpoint.certificates.goals import Inequality, count_bounds
from setpoint.certificates.regions import CountEvidence, are_independent, signs, upper_bound
from setpoint.certificates.sample import (
    EVERYONE,
    POSITIVES,
    CalibrationSample,
    Subset,
)
from setpoint.certificates.tails import lower, upper
from setpoint.rates import Bound, Expression, Where

CERTIFIED, NOT_CERTIFIED, INFEASIBLE = "certified", "not certified", "infeasible"
_RATIO = 1.15
"""Neighbours in the grid of ranks, counted from either end."""


@dataclass(frozen=True)
class ThresholdRule:
    """Accept scores above ``score``, or from ``score`` on if ``inclusive``."""

    score: float
    inclusive: bool = False
    anchor: Subset | None = None
    """The subset of which ``score`` has a rank that was fixed before the data."""
    chosen: bool = False
    """Whether it was chosen by looking at the data."""
    exact: bool = False
    """Whether it was tested at this very score, so that it must not be moved."""

    def value(self, sample: CalibrationSample) -> float:
        """What scores must exceed."""
        return below(self.score, sample.precision) if self.inclusive else self.score

    def settled(self, sample: CalibrationSample, where: Where) -> float:
        """The threshold to use: half way between two scores of a slice that it decides about."""
        value = self.value(sample)
        if self.exact:
            return value
        return halfway(value, sample.decided_scores(where), sample.precision)

    def may_depend_on(self, subset: Subset) -> bool:
        """Whether the threshold was chosen by looking at the examples of a subset."""
        return self.chosen or self.anchor is None or subset.overlaps(self.anchor)


class Thresholds(dict[Where, ThresholdRule]):
    """Thresholds by slice; a slice without one has that of a larger slice, everyone's is ``()``."""

    def __missing__(self, where: Where) -> ThresholdRule:
        for larger, rule in self.items():
            if set(larger) < set(where):
                return rule
        raise KeyError(where)


@dataclass(frozen=True)
class ThresholdRange:
    """Thresholds from ``low`` to ``high``, both included."""

    low: float
    high: float


@dataclass(frozen=True)
class Proof:
    """What a method has proved of one family of inequalities."""

    proved: dict[Inequality, tuple[float | None, str]]
    """For each, the value proved of the bound's expression, and the counts behind it."""
    ranges: tuple[ThresholdRange, ...]
    """The thresholds at which all inequalities of the family are proved."""
    notes: tuple[str, ...]
    """Where they are proved; if nowhere, why."""
    feasible: bool = True
    """False if no sample of this size could prove them."""
    end: ThresholdRule | None = None
    """The last admissible threshold of inequalities that are monotone in it."""


class ProofMethod(Protocol):
    """A way to prove inequalities at many thresholds at once.

    Methods are the objects in :data:`setpoint.certificates.search.PROOF_METHODS`; the first that
    takes an inequality proves it.
    """

    joint: ClassVar[bool]
    """Whether all inequalities that it takes are one family, or each is one by itself.

    Each family gets an equal part of ``delta``.
    """

    def takes(self, inequality: Inequality) -> bool:
        """Whether the method can prove an inequality."""

    def prove(self, family: Sequence[Inequality], sample: CalibrationSample, delta: float) -> Proof:
        """Where all inequalities of a family hold, wrong with probability at most ``delta``."""


@dataclass(frozen=True)
class SearchVerdict:
    """A verdict on a goal, with the thresholds and what is proved at them."""

    status: str
    thresholds: Thresholds
    proved: dict[Inequality, tuple[float | None, str]]
    notes: tuple[str, ...] = ()


def evidence(sample: CalibrationSample, subset: Subset, threshold: ThresholdRule) -> CountEvidence:
    """What ``sample`` says about the share of ``subset`` that is accepted at ``threshold``."""
    if subset.is_prior:
        count = sample.size(Subset(subset.where, POSITIVES))
        return CountEvidence(count, count, sample.size(Subset(subset.where, EVERYONE)), 1)
    n = sample.size(subset)
    above, reaching = (
        int(sample.above(subset, threshold.score, reaching=reach)) for reach in (False, True)
    )
    accepted = reaching if threshold.inclusive else above
    if threshold.chosen:
        grid = rank_grid(n)
        low = int(grid[np.searchsorted(grid, accepted, "right") - 1])
        return CountEvidence(low, int(grid[np.searchsorted(grid, accepted)]), n, len(grid))
    if threshold.anchor is None:
        return CountEvidence(accepted, accepted, n, 1)
    if subset == threshold.anchor:
        low, high = above + threshold.inclusive, reaching - (not threshold.inclusive)
        return CountEvidence(low, high, n, 1, ranked=True)
    apart = not subset.overlaps(threshold.anchor)
    low, high = (accepted, accepted) if apart else (above, reaching)
    if threshold.inclusive:
        return CountEvidence(low, min(high + 1, n), n, 1)
    return CountEvidence(max(low - 1, 0), high, n, 1)


@lru_cache(maxsize=256)
def rank_grid(n: int) -> NDArray[np.int64]:
    """A grid of counts from 0 to ``n``, denser towards both ends."""
    steps = int(np.log(max(n, 2) / 2) / np.log(_RATIO)) + 1
    half = np.unique(np.ceil(_RATIO ** np.arange(steps)).astype(np.int64))
    half = half[half <= n // 2 + 1]
    return np.unique(np.concatenate([[0, n], half[half <= n], n - half[half <= n]]))


def gather(
    expression: Expression, sample: CalibrationSample, thresholds: Thresholds
) -> tuple[dict[Subset, CountEvidence], bool]:
    """The evidence on every subset, and whether it is independent of each other."""
    subsets = list(signs(expression, sample.prevalence))
    known = {subset: evidence(sample, subset, thresholds[subset.where]) for subset in subsets}
    independent = are_independent(subsets)
    for subset in subsets:
        anchor = thresholds[subset.where].anchor
        if anchor is None or subset.is_prior or thresholds[subset.where].chosen:
            continue
        if anchor != subset and subset.overlaps(anchor):
            independent = False
    return known, independent


def largest_value(
    expression: Expression,
    sample: CalibrationSample,
    thresholds: Thresholds,
    delta: float,
    quick: bool = False,
) -> float:
    """An upper bound of ``expression`` at thresholds, wrong with probability ``delta``.

    The ``quick`` one is the union bound over all shares.
    """
    known, independent = gather(expression, sample, thresholds)
    independent = independent and not quick
    return upper_bound(expression, known, delta, sample.prevalence, independent, sharp=True)


def interval(
    expression: Expression, sample: CalibrationSample, thresholds: Thresholds, delta: float
) -> tuple[float, float]:
    """Bounds of ``expression`` from below and above, wrong with probability ``delta`` together."""
    high = largest_value(expression, sample, thresholds, delta / 2)
    low = 0.0 - largest_value(-expression, sample, thresholds, delta / 2)  # never -0.0
    return (max(low, 0.0), min(high, 1.0)) if expression.is_share else (low, high)


def proved_at(
    inequality: Inequality,
    sample: CalibrationSample,
    thresholds: Thresholds,
    delta: float,
    quick: bool = False,
) -> float:
    """A value that the bound's expression does not pass at thresholds fixed before the data.

    Wrong with probability at most ``delta``; exact if the bound is about one share.
    """
    share, bound = inequality.share, inequality.bound
    if sample.prices(bound.expression):
        at = thresholds[()].value(sample)
        return sample.cost_bounds(bound.expression, at, delta)[bound.sense == "<="]
    if share is None:
        return _not_passed(bound, sample, thresholds, delta, quick)
    where = share.subset.where
    count, n = share.counts(sample.table(where, thresholds[where].value(sample)))
    side = upper if share.at_most else lower
    return share.value(float(side(count, n, delta)))


def proved_together(
    family: Sequence[Inequality], sample: CalibrationSample, thresholds: Thresholds, delta: float
) -> tuple[list[float], list[float]]:
    """What is proved of each inequality at thresholds that other inequalities have led to.

    The threshold is a rank of its anchor, fixed in advance. If no subset overlaps the anchor, the
    tests are exact given the threshold; a claim needs all tests passed, so it is false with
    probability ``delta`` at most, however many there are. If the anchor is one of the subsets, the
    inequalities share ``delta``.

    Returns:
        The values to test the bounds by, and those to display, which hold together.
    """
    subsets = {s for i in family for s in signs(i.bound.expression, sample.prevalence)}
    free = not any(thresholds[s.where].may_depend_on(s) for s in subsets if not s.is_prior)
    tails = (delta, delta / count_bounds(family)) if free else (delta / len(family),) * 2
    tested, displayed = (
        [_not_passed(each.bound, sample, thresholds, tail) for each in family] for tail in tails
    )
    return tested, displayed


def _not_passed(bound: Bound, *known: Any) -> float:
    """A value that the bound's expression does not pass; ``known`` are those of the largest."""
    e = bound.expression
    return largest_value(e, *known) if bound.sense == "<=" else -largest_value(-e, *known)


def values_at(expression: Expression, sample: CalibrationSample, values: Any) -> Floats:
    """The value of an expression at each of several thresholds of everyone; 0/0 is NaN."""
    return sample.values(expression, values)


def value_at(
    expression: Expression, sample: CalibrationSample, thresholds: Thresholds
) -> float | None:
    """The value of an expression at the thresholds; None for 0/0."""
    with np.errstate(all="ignore"):
        if sample.prices(expression):
            value = float(sample.values(expression, thresholds[()].value(sample)))
        else:
            wheres = {rate.where for rate in expression.rates()}
            tables = {w: sample.measured(w, thresholds[w].value(sample)) for w in wheres}
            value = float(expression.of(tables))
    return value if np.isfinite(value) else None
