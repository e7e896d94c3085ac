"""Bounds of rates and of combinations of rates, from the counts behind them.

At a threshold a slice of the data has three unknown shares: of its positives that are accepted, of
its negatives that are accepted, and of positives among everyone (the prior). Every rate is a
quotient of sums of these, so it is monotone in each of them, and a combination of rates (a gap
between groups, a balanced error) is bounded once the shares are.

Each of ``k`` shares has a one-sided Clopper-Pearson bound at any tail ``q``; its deviate
``z = ndtri(1 - p)`` of the true share is at most standard normal, whatever the share. Asking every
share to keep within ``q = delta / k`` (the union bound) guards against the worst of all of them at
once. They are independent, so ``sum of max(z_i, 0)^2`` follows the chi-bar-squared law

    P(sum > x) <= sum_{i=1..k} C(k, i) 2^-k P(chi2_i > x),

and the true shares lie in the region where that sum is small, with confidence 1 - delta. A
function that is monotone in every share is largest on the region's outer face, which is covered
by boxes: for each, a vector of tails. For the difference of two equal shares the union bound is
2 x 1.96 standard errors away, the region sqrt(2) x 2.06, and nothing can do better than
sqrt(2) x 1.645.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import comb, pi
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr

from setpoint.axes.arrays import Floats
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Prevalence, Subset
from setpoint.certificates.tails import lower, upper
from setpoint.rates import (
    Agreement,
    Combination,
    Counts,
    Expression,
    Fold,
    Quotient,
    Rate,
    Where,
)

_CELL_NAMES = ("tp", "fp", "fn", "tn")
CellKind = tuple[float, float]
"""The weights of a cell in the numerator and in the denominator of a rate."""
_Weights = tuple[float, float, float, float]
_ValueRange = tuple[Any, Any]
_BOXES = {2: 64, 3: 24}
"""Boxes along each angle of the outer face."""
_DEVIATE_STEPS = 64
"""Deviates are rounded outwards to so many steps, since the bounds at each take long to compute."""


class CountEvidence(NamedTuple):
    """How many of ``n`` were accepted, for bounds from below and from above."""

    low: int
    high: int
    n: int
    tests: int
    """How many tests share the tail."""
    ranked: bool = False
    """Whether the count was fixed in advance, and the threshold follows from it."""


def signs(expression: Expression, prevalence: Prevalence) -> dict[Subset, int | None]:
    """The subsets an expression depends on: 1 if it rises with the share, -1 falls, None: either.

    With a declared ``prevalence`` the share of positives is known, or in a known interval.
    """
    found: dict[Subset, int | None] = {}
    terms: Iterable[tuple[float, Expression]] = [(1, expression)]
    if isinstance(expression, Combination):
        terms = expression.terms
    for weight, term in terms:
        for subset, slope in _term_signs(term, prevalence):
            sign = slope and (slope if weight > 0 else -slope)
            found[subset] = sign if found.get(subset, sign) == sign else None
    return found


def _term_signs(term: Expression, prevalence: Prevalence) -> Iterator[tuple[Subset, int | None]]:
    """The same for one term, of which subsets may occur twice."""
    for rate in term.rates():
        for subset, slope in rate_signs(rate, prevalence).items():
            if isinstance(term, Agreement):
                yield subset, {POSITIVES: 1, NEGATIVES: -1}.get(subset.kind)
            else:
                yield subset, slope if term is rate else None


@lru_cache(maxsize=256)
def rate_signs(rate: Rate, prevalence: Prevalence) -> dict[Subset, int | None]:
    """The same for one rate.

    By the accepted share ``x`` of a class the rate is ``(a0 + a x) / (b0 + b x)``, and its slope
    has the sign of ``a b0 - a0 b``, where ``a0`` and ``b0`` are averages of the cells' weights.
    """
    top, below = weights(rate)
    tp, fp, fn, tn = range(4)
    found = {}
    if prevalence is None and all(w[tp] == w[fp] and w[fn] == w[tn] for w in (top, below)):
        # acceptance is all that counts
        found[EVERYONE] = _sign([top[tp] * below[fn] - top[fn] * below[tp]])
    else:
        for kind, yes, no, others in (
            (POSITIVES, tp, fn, (fp, tn)),
            (NEGATIVES, fp, tn, (tp, fn)),
        ):
            a, b = top[yes] - top[no], below[yes] - below[no]
            found[kind] = _sign(a * below[i] - top[i] * b for i in (no, *others))
        if prevalence is None:
            pairs = [(i, j) for i in (tp, fn) for j in (fp, tn)]
            found[PRIOR] = _sign(top[i] * below[j] - top[j] * below[i] for i, j in pairs)
    return {Subset(rate.where, kind): sign for kind, sign in found.items() if sign != 0}


def weights(rate: Rate) -> tuple[_Weights, _Weights]:
    """The weights of TP, FP, FN and TN in the numerator and in the denominator."""
    return rate.numerator.weights[:4], rate.denominator.weights[:4]


def _sign(values: Iterable[float]) -> int | None:
    """The sign that all values have, zeros aside; None if they differ."""
    found = {(v > 0) - (v < 0) for v in values} - {0}
    return None if len(found) > 1 else found.pop() if found else 0


def upper_bound(
    expression: Expression,
    known: Mapping[Subset, CountEvidence],
    delta: float,
    prevalence: Prevalence,
    independent: bool = True,
    *,
    sharp: bool = False,
) -> float:
    """An upper bound of ``expression``, wrong with probability at most ``delta``.

    The ``sharp`` one of two independent counts takes longer
    (:mod:`setpoint.certificates.unconditional`).
    """
    directions = signs(expression, prevalence)
    if sharp and independent and _are_two_counts(directions, known):
        rising = tuple((subset, sign == 1, known[subset]) for subset, sign in directions.items())
        found = _upper_bound_of_two(expression, rising, delta, prevalence)
        if np.isfinite(found):
            return found
    box: dict[Subset, _ValueRange] = {}
    levels = tails_of_boxes(len(directions), delta, independent)
    for (subset, sign), (tails, index) in zip(directions.items(), levels, strict=True):
        seen, tail = known[subset], tails / known[subset].tests
        if sign == 1:
            bound = upper(seen.high, seen.n, tail)[index]
            box[subset] = (bound, bound)
        elif sign == -1:
            bound = lower(seen.low, seen.n, tail)[index]
            box[subset] = (bound, bound)
        else:
            ends = lower(seen.low, seen.n, tail / 2), upper(seen.high, seen.n, tail / 2)
            box[subset] = (ends[0][index], ends[1][index])
    with np.errstate(all="ignore"):
        return float(np.max(value_range(expression, box, prevalence)[1]))


def _are_two_counts(
    directions: Mapping[Subset, int | None], known: Mapping[Subset, CountEvidence]
) -> bool:
    """Whether an expression rises or falls with each of two binomial counts."""
    counted = all(known[s].tests == 1 and not known[s].ranked and known[s].n for s in directions)
    return counted and len(directions) == 2 and all(directions.values())


@lru_cache(maxsize=1024)  # the search and the claim that is displayed ask for the same one
def _upper_bound_of_two(
    expression: Expression,
    rising: tuple[tuple[Subset, bool, CountEvidence], ...],
    delta: float,
    prevalence: Prevalence,
) -> float:
    """The same by an exact test of shares with which the expression rises.

    ``rising`` says of each share whether it is so; if not, it is turned around.
    """

    def value(*shares: Any) -> Any:
        pairs = zip(rising, shares, strict=True)
        box = {s: (x, x) if up else (1 - x, 1 - x) for (s, up, _), x in pairs}
        with np.errstate(all="ignore"):
            return value_range(expression, box, prevalence)[1]

    first, second = (seen.high if up else seen.n - seen.low for _, up, seen in rising)
    sizes = rising[0][2].n, rising[1][2].n
    from setpoint.certificates.unconditional import TwoShares

    return TwoShares(value, (first, second), sizes).upper_bound(delta, float(value(1.0, 1.0)))


@lru_cache(maxsize=256)
def tails_of_boxes(
    shares: int, delta: float, independent: bool = True
) -> tuple[tuple[Floats, NDArray[np.int64]], ...]:
    """For each share the tails that occur, and which of them every box has.

    With confidence 1 - delta the true shares are in one of the boxes.
    """
    if shares == 1 or not independent or shares not in _BOXES:
        return ((np.array([delta / shares]), np.zeros(1, np.int64)),) * shares
    face = np.ceil(_face(shares) * _DEVIATE_STEPS) / _DEVIATE_STEPS
    levels = [np.unique(column, return_inverse=True) for column in face.T]
    size = radius(shares, delta)
    return tuple((ndtr(-size * deviates), index) for deviates, index in levels)


def radius(shares: int, delta: float) -> float:
    """The square root of the chi-bar-squared quantile."""
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = sum(
            comb(shares, i) * 0.5**shares * float(gammaincc(i / 2, middle**2 / 2))
            for i in range(1, shares + 1)
        )
        low, high = (low, middle) if tail <= delta else (middle, high)
    return high


def _face(shares: int) -> Floats:
    """The outer corners of boxes that cover the positive part of the unit sphere."""
    angles = np.linspace(0, pi / 2, _BOXES[shares] + 1)
    first, last = np.cos(angles[:-1]), np.sin(angles[1:])
    if shares == 2:
        return np.stack([first, last], 1)
    rest = last[:, None]
    corners = np.broadcast_arrays(first[:, None], rest * first, rest * last)
    return np.stack([c.ravel() for c in corners], 1)


def value_range(
    expression: Expression, box: Mapping[Subset, _ValueRange], prevalence: Prevalence
) -> _ValueRange:
    """The least and the largest value of ``expression`` over a box of shares."""
    if isinstance(expression, Rate):
        return _range_of_rate(expression, box, prevalence)
    if isinstance(expression, Agreement):
        return _range_of_agreement(expression, box, prevalence)
    parts = [value_range(child, box, prevalence) for child in expression.children]
    if isinstance(expression, Combination):
        low = high = expression.constant
        for (weight, _), (a, b) in zip(expression.terms, parts, strict=True):
            a, b = (a, b) if weight > 0 else (b, a)
            low, high = low + weight * a, high + weight * b
        return low, high
    if isinstance(expression, Quotient):
        (a, b), (c, d) = parts
        corners = [np.divide(x, y) for x in (a, b) for y in (c, d)]
        unsafe = np.asarray(c) * np.asarray(d) <= 0
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
        return np.where(unsafe, -np.inf, low), np.where(unsafe, np.inf, high)
    assert isinstance(expression, Fold)
    lows, highs = zip(*parts, strict=True)
    if expression.kind == "abs":
        sizes = [np.abs(lows[0]), np.abs(highs[0])]
        least = np.where(np.asarray(lows[0]) * highs[0] <= 0, 0.0, np.minimum(*sizes))
        return least, np.maximum(*sizes)
    pick = np.maximum if expression.kind == "max" else np.minimum
    return pick.reduce(lows), pick.reduce(highs)


def _range_of_rate(
    rate: Rate, box: Mapping[Subset, _ValueRange], prevalence: Prevalence
) -> _ValueRange:
    """A rate is monotone along each share, so it is extreme at a corner of the box.

    Shares that the rate does not depend on may be anything: 0.5 here.
    """
    ends = {subset.kind: box[subset] for subset in rate_signs(rate, prevalence)}
    if prevalence is not None:
        ends[PRIOR] = prevalence if isinstance(prevalence, tuple) else (prevalence,) * 2
    corners = []
    for corner in product(*((e if e[0] is not e[1] else e[:1]) for e in ends.values())):
        shares = dict(zip(ends, corner, strict=True))
        prior = shares.get(PRIOR, 0.5)
        either = shares.get(EVERYONE, 0.5)
        tp, fp = prior * shares.get(POSITIVES, either), (1 - prior) * shares.get(NEGATIVES, either)
        table = Counts(tp, fp, prior - tp, 1 - prior - fp, prior, 1 - prior)
        corners.append(np.asarray(rate.of({rate.where: table})))
    low = high = corners[0]
    for corner_value in corners[1:]:
        low, high = np.minimum(low, corner_value), np.maximum(high, corner_value)
    undefined = np.isnan(low)  # of any corner
    return np.where(undefined, -np.inf, low), np.where(undefined, np.inf, high)


def _range_of_agreement(
    agreement: Agreement, box: Mapping[Subset, _ValueRange], prevalence: Prevalence
) -> _ValueRange:
    """It rises with the hits and falls with the alarms; its size has one maximum by the prior."""
    kinds = POSITIVES, NEGATIVES, PRIOR
    hits, alarms, prior = (box.get(Subset(agreement.hits.where, kind)) for kind in kinds)
    assert hits is not None
    assert alarms is not None
    if prior is None:
        prior = prevalence if isinstance(prevalence, tuple) else (prevalence, prevalence)
    least, largest = (
        [
            np.asarray(agreement.at_shares(a, b, p))
            for p in (*prior, np.clip(agreement.strongest_prior(a, b), *prior))
        ]
        for a, b in ((hits[0], alarms[1]), (hits[1], alarms[0]))
    )
    return np.fmin.reduce(least), np.fmax.reduce(largest)


def are_independent(subsets: Sequence[Subset]) -> bool:
    """Whether no subset overlaps another."""
    return not any(a.overlaps(b) for i, a in enumerate(subsets) for b in subsets[:i])


def interval_at(
    expression: Expression, tables: Mapping[Where, Counts], tail: float
) -> tuple[float, float] | None:
    """Bounds from below and above at a threshold that was fixed before these data.

    Each is wrong with probability at most ``tail``; None for 0/0 and for numbers of examples. A
    rate with two kinds of cells is a function of one share (F1 of TP against FP and FN), and its
    interval is that of Clopper and Pearson; anything else is bounded through its shares.

    Examples:
        >>> from setpoint.rates import f_score
        >>> low, high = interval_at(f_score(1), {(): Counts(80, 20, 10, 890, 90, 910)}, 0.05)
        >>> round(low, 3), round(high, 3)
        (0.787, 0.887)
    """
    if any(rate.numerator.one or rate.denominator.one for rate in expression.rates()):
        return None
    if isinstance(expression, Rate):
        found = _interval_of_one_share(expression, tables[expression.where], tail)
        if found is not None:
            return found
    subsets = list(signs(expression, None))
    known = {subset: _counted(subset, tables[subset.where]) for subset in subsets}
    if not all(seen.n for seen in known.values()):
        return None
    independent = are_independent(subsets)
    high = upper_bound(expression, known, tail, None, independent)
    low = 0.0 - upper_bound(-expression, known, tail, None, independent)  # never -0.0
    return (low, high) if np.isfinite([low, high]).all() else None


def two_kinds(rate: Rate) -> dict[CellKind, list[str]] | None:
    """The cells that a rate counts by their weights, if there are two kinds of them, else None.

    The rate is then a function of one share: ``precision`` of TP against FP.
    """
    kinds: dict[CellKind, list[str]] = {}
    for cell, above, below in zip(_CELL_NAMES, *weights(rate), strict=True):
        if above or below:
            kinds.setdefault((above, below), []).append(cell)
    return kinds if len(kinds) == 2 else None


def _interval_of_one_share(rate: Rate, table: Counts, tail: float) -> tuple[float, float] | None:
    """The interval of a rate whose cells are of two kinds; None if there are more, and for 0/0."""
    kinds = two_kinds(rate)
    if kinds is None:
        return None
    (a, b), (c, d) = kinds
    yes, no = (sum(int(getattr(table, cell)) for cell in cells) for cells in kinds.values())
    if yes + no == 0:
        return None
    low, high = (float(end(yes, yes + no, tail)) for end in (lower, upper))
    under = b * low + d * (1 - low), b * high + d * (1 - high)
    if not all(under):
        return None
    ends = (a * low + c * (1 - low)) / under[0], (a * high + c * (1 - high)) / under[1]
    return min(ends), max(ends)


def _counted(subset: Subset, table: Counts) -> CountEvidence:
    tp, fp, positives, negatives = (
        int(n) for n in (table.tp, table.fp, table.positives, table.negatives)
    )
    count, n = {
        POSITIVES: (tp, positives),
        NEGATIVES: (fp, negatives),
        EVERYONE: (tp + fp, positives + negatives),
        PRIOR: (positives, positives + negatives),
    }[subset.kind]
    return CountEvidence(count, count, n, 1)


def is_plain_share(expression: Expression) -> TypeGuard[Rate]:
    """Whether it counts some examples out of some examples, each once: then it is binomial."""
    if not isinstance(expression, Rate) or not expression.is_share or expression.denominator.one:
        return False
    return {*expression.numerator.weights, *expression.denominator.weights} <= {0.0, 1.0}
