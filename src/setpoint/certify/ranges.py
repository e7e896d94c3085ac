"""How large an expression can be, given what the data leave possible for its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Part, rate_signs, signs
from setpoint.certify.places import Evidence, Place, evidence
from setpoint.certify.regions import boxes
from setpoint.certify.samples import Sample
from setpoint.certify.tails import lower, upper
from setpoint.rates import Combination, Counts, Expression, Fold, Quotient, Rate, Where

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
