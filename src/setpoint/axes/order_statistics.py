"""Order statistics of the scores: thresholds that need no scan, and the spread.

A cap on the false positive rate is a cap on the number of accepted negatives: the best threshold is
the first negative that would be one too many, if accepting more never makes the objective worse. A
partition finds it in linear time, where a scan would sort all scores first.
"""

from __future__ import annotations

from math import ceil, floor, inf, sqrt

import numpy as np

from setpoint.axes.arrays import Floats
from setpoint.axes.sample import Sample
from setpoint.axes.scan import Counted, Hold, Placement
from setpoint.rates import Array

QUANTILES = (0.95 - 1e-12, 0.05 - 1e-12)
"""Shares of the weight, counted from the highest score; copies of an example equal its weight."""


def lowest_permitted(sample: Sample, target: Hold) -> Placement | None:
    """The lowest thresholds that a target with :attr:`Hold.counted` permits, ``[c, m]``.

    None where weights differ, a class is missing, all of it may be accepted, or equal scores leave
    the nearest count of a setpoint unattained: then a scan decides.
    """
    found = []
    for output in range(len(sample.scores)):
        thresholds = _of_one_output(sample, output, target)
        if thresholds is None:
            return None
        found.append(thresholds)
    at = np.array(found)
    return Placement(at, at, [np.ones(at.shape, bool)])


def _of_one_output(sample: Sample, output: int, target: Hold) -> Floats | None:
    """The thresholds of one output, ``[m]``; see :func:`lowest_permitted`."""
    assert target.counted is not None
    classes = target.counted.classes
    columns, totals, unit = sample.columns[output].T, sample.totals[output].tolist(), 1.0
    weights = columns[classes[0]]
    if len(classes) == 2:
        weights = weights + columns[1]
    there = weights > 0
    if not sample.unweighted:
        unit = weights.max()
        if not unit or (weights[there] != unit).any():
            return None
    scores = sample.ranked[output][there]
    counts = _accepted(target, target.counted, totals, len(scores), unit)
    most = max(counts)
    if not 0 <= most < len(scores):
        return None
    start = len(scores) - most - 1
    scores.partition(start)
    highest = scores[start:]
    highest.sort()
    at: Floats = highest[[most - count for count in counts]].astype(np.float64)
    if target.sense == "at":
        above = np.append(highest, inf)[[most - count + 1 for count in counts]]
        return None if (above == at).any() else at
    return at


def _accepted(
    target: Hold, counted: Counted, totals: list[float], size: int, unit: float
) -> list[int]:
    """How many of the counted examples are accepted at each level.

    As many as the cap allows, or the number nearest to a setpoint (of two, the smaller one). Of a
    rate that counts rejected examples, the others are accepted.
    """
    positives, negatives, one = counted.below
    whole = positives * totals[0] + negatives * totals[1] + one
    scale = whole / (counted.weight * unit)
    counts = [level * scale for level in target.levels]
    if target.direction < 0:
        counts = [size - count for count in counts]
    slack = target.tolerance * scale
    if target.sense == "at":
        return [ceil(count - (1 + slack) / 2) for count in counts]
    return [floor(count + slack) for count in counts]


def spread(scores: Array, weights: Array | None = None, ranked: Array | None = None) -> Array:
    """The weighted population deviation of scores ``[c, n]``, ``[c]``; 0 for constant scores.

    Robust: scores farther outside the middle 90 % than that middle is wide are moved to this fence
    (for a Gaussian that is nobody: it stands at 4.9 deviations). One score of 1e3 among 512
    changes the result by about two per cent.

    Args:
        scores: In float64.
        weights: What each weighs; None if that is one.
        ranked: The same scores in less precision, if they came in that.
    """
    if weights is None:
        pairs = zip(scores, scores if ranked is None else ranked, strict=True)
        return np.array([_fenced_deviation(row, np.sort(same)) for row, same in pairs])
    there = [own > 0 for own in weights]
    rows = [(row[here], own[here]) for row, own, here in zip(scores, weights, there, strict=True)]
    found = [_fenced_deviation(s, *_sort_with_weights(s, w), w) if len(s) else 0.0 for s, w in rows]
    return np.array(found)


def _fenced_deviation(
    scores: Floats, rising: Floats, running: Floats | None = None, weights: Floats | None = None
) -> float:
    """The spread of scores, which are given once more in rising order.

    Args:
        scores: In the order of the weights.
        rising: The same, sorted.
        running: Of scores with weights, the weight of those from the highest down to each.
        weights: What each weighs, none of them zero; None if that is one.
    """
    size = len(rising)
    if running is None:
        places = [size - ceil(share * size) for share in QUANTILES]
    else:
        places = [size - 1 - running.searchsorted(share * running[-1]) for share in QUANTILES]
    low, high, least, greatest = (float(rising[place]) for place in (*places, 0, -1))
    reach = high - low if high > low else inf  # almost all tied: no fence
    bottom, top = max(low - reach, least), min(high + reach, greatest)
    away = scores if least == bottom and top == greatest else scores.clip(bottom, top)
    if weights is None:
        away = away - away.sum() / len(away)
        variance = away @ away / len(away)
    else:
        total = weights.sum()
        away = away - weights @ away / total
        variance = (weights * away) @ away / total
    return sqrt(variance) if variance > 1e-26 * max(top * top, bottom * bottom) else 0.0


def _sort_with_weights(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Scores in rising order, and the running sums of their weights from the highest down."""
    falling = (-scores).argsort()
    return scores[falling[::-1]], weights[falling].cumsum()
