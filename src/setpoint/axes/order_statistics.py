"""Order statistics of the scores: thresholds that need no scan, and the spread.

A cap on the false positive rate is a cap on the number of accepted negatives: the best threshold is
the first negative that would be one too many, if accepting more never makes the objective worse. A
partition finds it in linear time, where a scan would sort all scores first.
"""

from __future__ import annotations

import numpy as np

from setpoint.axes.cuts import bisect, take
from setpoint.axes.sample import Sample
from setpoint.axes.scan import Hold, Placement
from setpoint.rates import Array, Rate

QUANTILES = (0.95 - 1e-12, 0.05 - 1e-12)
"""Shares of the weight, counted from the highest score; copies of an example equal its weight."""


def lowest_permitted(sample: Sample, target: Hold) -> Placement | None:
    """The lowest thresholds that a target with :attr:`Hold.counted` permits, ``[c, m]``.

    None where weights differ, a class is missing, all of it may be accepted, or equal scores leave
    the nearest count of a setpoint unattained: then a scan decides.
    """
    found = [_of_one_output(sample, output, target) for output in range(len(sample.scores))]
    if any(thresholds is None for thresholds in found):
        return None
    at = np.array(found)
    return Placement(at, at, [np.ones(at.shape, bool)])


def _of_one_output(sample: Sample, output: int, target: Hold) -> Array | None:
    """The thresholds of one output, ``[m]``; see :func:`lowest_permitted`."""
    scores, totals, unit = sample.scores[output], sample.totals[output], 1.0
    if not sample.unweighted or len(target.counted) == 1:
        weights = sample.columns[output][:, target.counted].sum(-1)
        there = weights > 0
        scores = np.where(there, scores, -np.inf)
        if not sample.unweighted:
            unit = weights.max()
            if (weights[there] != unit).any():
                return None
    size = totals[list(target.counted)].sum() / unit
    accepted = _most_accepted(target, totals, size, unit)
    most = int(accepted.max())
    if accepted.min() < 0 or most >= size:
        return None
    highest = np.partition(scores, -most - 1)[-most - 1 :]
    highest.sort()
    at = highest[most - accepted]
    if target.sense == "at" and (at == np.append(highest, np.inf)[most - accepted + 1]).any():
        return None
    return at


def _most_accepted(target: Hold, totals: Array, size: float, unit: float) -> Array:
    """How many of the counted examples are accepted at each level, ``[m]``.

    As many as the cap allows, or the number nearest to a setpoint (of two, the smaller one). Of a
    rate that counts rejected examples, the others are accepted.
    """
    rate = target.expression
    assert isinstance(rate, Rate)
    below, weight = rate.denominator, max(rate.numerator.weights)
    whole = below.tp * totals[0] + below.fp * totals[1] + below.one
    scale = whole / (weight * unit)
    exact, slack = np.array(target.levels) * scale, target.tolerance * scale
    exact = exact if target.direction > 0 else size - exact
    counts = np.ceil(exact - (1 + slack) / 2) if target.sense == "at" else np.floor(exact + slack)
    return counts.astype(np.intp)


def spread(scores: Array, weights: Array | None = None) -> Array:
    """The weighted population deviation of scores ``[c, n]``, ``[c]``; 0 for constant scores.

    Robust: scores farther outside the middle 90 % than that middle is wide are moved to this fence
    (for a Gaussian that is nobody: it stands at 4.9 deviations). One score of 1e3 among 512
    changes the result by about two per cent.
    """
    low, high, least, greatest, total = _ends(scores, weights)
    reach = high - low
    reach = np.where(reach > 0, reach, np.inf)  # almost all tied: no fence
    bottom, top = np.maximum(low - reach, least), np.minimum(high + reach, greatest)
    away = np.minimum(np.maximum(scores, bottom), top)
    weigh = away if weights is None else weights * away
    away -= weigh.sum(-1, keepdims=True) / total
    np.multiply(away, away, out=away)
    if weights is not None:
        away *= weights
    variance = away.sum(-1, keepdims=True) / total
    noise = 1e-26 * np.maximum(top * top, bottom * bottom)
    return np.sqrt(variance * (variance > noise))[:, 0]


def _ends(scores: Array, weights: Array | None) -> tuple[Array, Array, Array, Array, Array]:
    """Quantiles, extremes and total weight of the examples that are there, ``[c, 1]`` each."""
    if weights is None:
        n = scores.shape[-1]
        low, high = (n - int(np.ceil(share * n)) for share in QUANTILES)
        part = np.partition(scores, low, -1)
        rest = part[:, low:]
        rest.partition(high - low, -1)
        ends = part[:, low : low + 1], part[:, high : high + 1]
        return *ends, scores.min(-1, keepdims=True), scores.max(-1, keepdims=True), n
    there = weights > 0
    order = np.where(there, -scores, np.inf).argsort(-1)
    running = take(weights, order).cumsum(-1)
    total = running[:, -1:] + (running[:, -1:] == 0)
    places = bisect(running, np.array(QUANTILES) * total).clip(0, scores.shape[-1] - 1)
    ends = take(scores, take(order, places))
    least = np.where(there, scores, np.inf).min(-1, keepdims=True)
    greatest = np.where(there, scores, -np.inf).max(-1, keepdims=True)
    return ends[:, :1], ends[:, 1:], least, greatest, total
