"""What several independent measurements leave possible together.

Each of ``k`` shares has a one-sided Clopper-Pearson bound at any tail ``q``; its deviate
``z = ndtri(1 - p)`` of the true share is at most standard normal, whatever the share. Asking every
share to keep within ``q = delta / k`` (the union bound) guards against all of them being unlucky to
the full at once. They are independent, so ``sum of max(z_i, 0)^2`` follows the chi-bar-squared law

    P(sum > x) <= sum_{i=1..k} C(k, i) 2^-k P(chi2_i > x),

and the true shares lie in the region where that sum is small, with confidence 1 - delta. A
function that moves one way with every share is largest on the region's outer face, which is covered
by boxes: for each, a vector of tails. For the difference of two equal shares the union bound is
2 x 1.96 standard errors away, the region sqrt(2) x 2.06, and nothing can do better than
sqrt(2) x 1.645.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import product
from math import comb, pi
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr

from setpoint.certificates.evidence import Evidence, Place, evidence
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    PRIOR,
    Part,
    Sample,
    cells,
    rate_signs,
    signs,
)
from setpoint.certificates.tails import Floats, lower, upper
from setpoint.rates import Combination, Counts, Expression, Fold, Quotient, Rate, Where

Levels = tuple[Floats, NDArray[np.int64]]

CELLS = {2: 64, 3: 24}
"""Boxes along each angle of the outer face."""
STEPS = 64
"""Deviates are rounded outwards to so many steps, since the bounds at each take long to compute."""


@lru_cache(maxsize=256)
def boxes(shares: int, delta: float, independent: bool = True) -> tuple[Levels, ...]:
    """For each share the tails that occur, and which of them every box has.

    With confidence 1 - delta the truth is in one of the boxes.
    """
    if shares == 1 or not independent or shares not in CELLS:
        return ((np.array([delta / shares]), np.zeros(1, np.int64)),) * shares
    face = np.ceil(_face(shares) * STEPS) / STEPS
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
    angles = np.linspace(0, pi / 2, CELLS[shares] + 1)
    first, last = np.cos(angles[:-1]), np.sin(angles[1:])
    if shares == 2:
        return np.stack([first, last], 1)
    rest = last[:, None]
    corners = np.broadcast_arrays(first[:, None], rest * first, rest * last)
    return np.stack([c.ravel() for c in corners], 1)


# How large an expression can be, given what the data leave possible for its parts.


Spread = tuple[Any, Any]
Box = Mapping[Part, Spread]
Places = Callable[[Where], Place]


def largest(
    expression: Expression,
    known: Mapping[Part, Evidence],
    delta: float,
    prevalence: float | None,
    independent: bool = True,
) -> float:
    """An upper bound of ``expression``, wrong with probability at most ``delta``."""
    directions = signs(expression, prevalence)
    box: dict[Part, Spread] = {}
    regions = boxes(len(directions), delta, independent)
    for (part, sign), (levels, index) in zip(directions.items(), regions, strict=True):
        seen, tail = known[part], levels / known[part].tests
        if sign == 1:
            bound = upper(seen.high, seen.n, tail)[index]
            box[part] = (bound, bound)
        elif sign == -1:
            bound = lower(seen.low, seen.n, tail)[index]
            box[part] = (bound, bound)
        else:
            ends = lower(seen.low, seen.n, tail / 2), upper(seen.high, seen.n, tail / 2)
            box[part] = (ends[0][index], ends[1][index])
    with np.errstate(all="ignore"):
        return float(np.max(spread(expression, box, prevalence)[1]))


def interval(
    expression: Expression, sample: Sample, places: Places, delta: float, prevalence: float | None
) -> tuple[float, float]:
    """Bounds of ``expression`` from below and above, wrong with probability ``delta`` together."""
    known, independent = gather(expression, sample, places, prevalence)
    high = largest(expression, known, delta / 2, prevalence, independent)
    low = 0.0 - largest(-expression, known, delta / 2, prevalence, independent)  # never -0.0
    return (max(low, 0.0), min(high, 1.0)) if expression.is_share else (low, high)


def gather(
    expression: Expression, sample: Sample, places: Places, prevalence: float | None
) -> tuple[dict[Part, Evidence], bool]:
    """The evidence on every part, and whether the parts are independent of each other."""
    parts = list(signs(expression, prevalence))
    known = {part: evidence(sample, part, places(part.where)) for part in parts}
    apart = not any(a.overlaps(b) for i, a in enumerate(parts) for b in parts[:i])
    for part in parts:
        place = places(part.where)
        entangled = place.anchor is not None and part.kind != PRIOR and not place.chosen
        if entangled and place.anchor != part and part.overlaps(place.anchor):  # type: ignore[arg-type]
            apart = False
    return known, apart


def spread(expression: Expression, box: Box, prevalence: float | None) -> Spread:
    """The least and the largest value of ``expression`` over a box of shares."""
    if isinstance(expression, Rate):
        return _of_rate(expression, box, prevalence)
    parts = [spread(child, box, prevalence) for child in expression.children]
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


def _of_rate(rate: Rate, box: Box, prevalence: float | None) -> Spread:
    """A rate moves one way along each share, so it is extreme at a corner of the box."""
    ends = {part: box[part] for part in rate_signs(rate, prevalence)}
    corners = []
    for corner in product(*(_ends(end) for end in ends.values())):
        value = dict(zip((part.kind for part in ends), corner, strict=True))
        corners.append(np.asarray(rate.of({rate.where: _table(value, prevalence)})))
    undefined = np.any([np.isnan(c) for c in corners], axis=0)
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return np.where(undefined, -np.inf, low), np.where(undefined, np.inf, high)


def _ends(end: Spread) -> Spread | tuple[Any]:
    return end if end[0] is not end[1] else (end[0],)


def _table(shares: Mapping[str, Any], prevalence: float | None) -> Counts:
    """The cells of a population; what a rate does not depend on may be anything."""
    prior = shares.get(PRIOR, 0.5 if prevalence is None else prevalence)
    either = shares.get(EVERYONE, 0.5)
    tp, fp = prior * shares.get(POSITIVES, either), (1 - prior) * shares.get(NEGATIVES, either)
    return Counts(tp, fp, prior - tp, 1 - prior - fp, prior, 1 - prior)


# Intervals of rates at a threshold that was fixed before these data: of shares, F scores, gaps.


NAMES = ("tp", "fp", "fn", "tn")


def interval_at(
    expression: Expression, tables: Mapping[Where, Counts], tail: float
) -> tuple[float, float] | None:
    """Bounds from below and above, each wrong with probability at most ``tail``; None for 0/0.

    A rate with two kinds of cells is a function of one share (F1 of TP against FP and FN), and its
    interval is that of Clopper and Pearson; anything else is bounded through its parts.

    >>> from setpoint.rates import f_score
    >>> low, high = interval_at(f_score(1), {(): Counts(80, 20, 10, 890, 90, 910)}, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.787, 0.887)
    """
    if any(rate.numerator.one or rate.denominator.one for rate in expression.rates()):
        return None  # it counts heads, which has no share to be sure of
    if isinstance(expression, Rate):
        found = _of_one_share(expression, tables[expression.where], tail)
        if found is not None:
            return found
    parts = list(signs(expression, None))
    known = {part: _seen(part, tables[part.where]) for part in parts}
    if not all(seen.n for seen in known.values()):
        return None
    apart = not any(a.overlaps(b) for i, a in enumerate(parts) for b in parts[:i])
    high = largest(expression, known, tail, None, apart)
    low = 0.0 - largest(-expression, known, tail, None, apart)  # never -0.0
    return (low, high) if np.isfinite([low, high]).all() else None


def _of_one_share(rate: Rate, table: Counts, tail: float) -> tuple[float, float] | None:
    """The interval of a rate whose cells are of two kinds; None if there are more."""
    kinds: dict[tuple[float, float], int] = {}
    for name, above, below in zip(NAMES, *cells(rate), strict=True):
        if above or below:
            kinds[(above, below)] = kinds.get((above, below), 0) + int(getattr(table, name))
    if len(kinds) != 2:
        return None
    ((a, b), yes), ((c, d), no) = kinds.items()
    if yes + no == 0:
        return None
    low, high = (float(end(yes, yes + no, tail)) for end in (lower, upper))
    under = b * low + d * (1 - low), b * high + d * (1 - high)
    if not all(under):
        return None
    ends = (a * low + c * (1 - low)) / under[0], (a * high + c * (1 - high)) / under[1]
    return min(ends), max(ends)


def _seen(part: Part, table: Counts) -> Evidence:
    tp, fp, positives, negatives = (
        int(n) for n in (table.tp, table.fp, table.positives, table.negatives)
    )
    count, n = {
        POSITIVES: (tp, positives),
        NEGATIVES: (fp, negatives),
        EVERYONE: (tp + fp, positives + negatives),
    }.get(part.kind, (positives, positives + negatives))
    return Evidence(count, count, n, 1)


def is_plain_share(expression: Expression) -> TypeGuard[Rate]:
    """Whether it counts some examples out of some examples, each once: then it is binomial."""
    if not isinstance(expression, Rate) or not expression.is_share or expression.denominator.one:
        return False
    return {*expression.numerator.weights, *expression.denominator.weights} <= {0.0, 1.0}
