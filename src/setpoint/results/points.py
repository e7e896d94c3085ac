"""What other thresholds would do to the data at hand: rates with intervals, and costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import Counts, Where, coverage, fpr, precision, recall
from setpoint.results.measured import Interval, Margins, Measured, clopper_pearson, measure

MOST_STOPS = 200
"""How many thresholds a page lets one move through."""
_FACTORS = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)


class UsualRates(NamedTuple):
    """The four rates that every table shows."""

    fpr: Measured
    recall: Measured
    precision: Measured
    coverage: Measured


def usual_rates(table: Counts, confidence: float) -> UsualRates:
    """FPR, recall, precision and share of alerts of a table of counts, with intervals."""
    tables: dict[Where, Counts] = {(): table}
    return UsualRates(*(measure(r, tables, confidence) for r in (fpr, recall, precision, coverage)))


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and what it does to the data at hand."""

    threshold: float
    fpr: Measured
    recall: Measured
    precision: Measured
    coverage: Measured
    chosen: bool

    @property
    def alerts_per_1000(self) -> float:
        """How many of 1,000 examples are flagged."""
        return 1000 * self.coverage.value

    @property
    def misses(self) -> int:
        """How many positives are not flagged."""
        return (self.recall.total or 0) - (self.recall.count or 0)

    @property
    def missed(self) -> Measured:
        """The share of positives that are not flagged."""
        ends = self.recall.interval
        turned = None if ends is None else Interval(1 - ends.high, 1 - ends.low)
        return Measured(1 - self.recall.value, turned, self.misses, self.recall.total)

    def errors(self, confidence: float) -> tuple[Interval, Interval]:
        """Shares of all examples that are missed, and falsely flagged.

        The two intervals hold together: each takes half of the risk.
        """
        total, each = self.coverage.total or 0, (1 + confidence) / 2
        counts = (self.misses, self.fpr.count or 0)
        first, second = (clopper_pearson(count, total, each) for count in counts)
        return first, second

    def cost(self, costs: tuple[float, float], confidence: float) -> Measured:
        """What one example costs on average if a miss and a false alarm cost so much.

        Examples:
            >>> rates = usual_rates(Counts(8, 5, 2, 95, 10, 100), 0.95)
            >>> point = OperatingPoint(0.5, *rates, chosen=True)
            >>> found = point.cost((500.0, 5.0), 0.95)
            >>> round(found.value, 2), [round(end, 2) for end in found.interval]
            (9.32, [0.82, 36.47])
        """
        miss, alarm = costs
        (missed, flagged), total = self.errors(confidence), self.coverage.total or 0
        value = (miss * self.misses + alarm * (self.fpr.count or 0)) / total
        ends = (miss * a + alarm * b for a, b in zip(missed, flagged, strict=True))
        return Measured(value, Interval(*ends))


def operating_points(
    margins: Margins, labels: Any, cuts: Iterable[float], *, confidence: float = 0.95
) -> list[OperatingPoint]:
    """The rates at each cut, from strict to loose; of cuts that decide alike one is kept.

    The present threshold is kept before others.

    Examples:
        >>> scores, labels = np.arange(100.0), np.arange(100) >= 95
        >>> points = operating_points(Margins(scores, 89.0), labels, [97.0, 89.0, 89.5])
        >>> [(p.threshold, p.recall.count, p.fpr.count, p.chosen) for p in points]
        [(97.0, 2, 0, False), (89.0, 5, 5, True)]
    """
    y = np.asarray(labels) == 1
    parts = [np.sort(margins.values[part]) for part in (y, ~y)]
    points: dict[int, OperatingPoint] = {}
    for cut in sorted(set(cuts), key=lambda c: (c != margins.cut, -c)):
        tp, fp = (_above(part, cut) for part in parts)
        positives, negatives = (len(part) for part in parts)
        table = Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)
        if tp + fp not in points:
            rates = usual_rates(table, confidence)
            points[tp + fp] = OperatingPoint(cut, *rates, chosen=cut == margins.cut)
    return [points[count] for count in sorted(points)]


def _above(ordered: NDArray[Any], cut: float) -> int:
    """How many values lie strictly above, compared in their own precision."""
    below = np.searchsorted(ordered, np.asarray(cut, ordered.dtype), side="right")
    return len(ordered) - int(below)


def sensitivity(
    margins: Margins,
    labels: Any,
    *,
    confidence: float = 0.95,
    factors: Sequence[float] = _FACTORS,
) -> list[OperatingPoint]:
    """Rates at thresholds that raise ``factors`` times the alerts of the present one.

    The thresholds are scores of these data, from strict to loose; ties may merge some of them.

    Examples:
        >>> scores, labels = np.arange(100.0), np.arange(100) >= 95
        >>> [s.alerts_per_1000 for s in sensitivity(Margins(scores, 89.0), labels)]
        [50.0, 70.0, 90.0, 100.0, 110.0, 120.0, 150.0, 200.0]
    """
    if not np.isfinite(margins.cut):
        return []
    ordered = np.sort(margins.values)[::-1]
    alerts = int(margins.accepted.sum())
    places = {min(len(ordered) - 1, int(max(alerts, 1) * factor)) for factor in factors}
    cuts = {float(ordered[place]) for place in places if place != alerts} | {margins.cut}
    return operating_points(margins, labels, cuts, confidence=confidence)


def stops(margins: Margins, labels: Any, *, confidence: float = 0.95) -> list[OperatingPoint]:
    """At most :data:`MOST_STOPS` thresholds from the highest score to the lowest.

    A third of them divide the number of alerts evenly on a logarithmic scale, from 1 to all; a
    third divide the positives evenly, so that recall moves in small steps; a third lie close to the
    present threshold, between half and twice its alerts. All are scores of these data.

    Examples:
        >>> scores, labels = np.arange(1e5), np.arange(1e5) % 7 == 0
        >>> found = stops(Margins(scores, 9e4), labels)
        >>> len(found) <= 200, [p.threshold for p in found if p.chosen]
        (True, [90000.0])
    """
    ordered = np.sort(margins.values)[::-1]
    positive = np.sort(margins.values[np.asarray(labels) == 1])[::-1]
    size, part = len(ordered), MOST_STOPS // 3 - 1
    places = [0, *np.geomspace(1, size, part).astype(int) - 1, size - 1]
    alerts = int(margins.accepted.sum())
    if np.isfinite(margins.cut) and alerts:
        near = np.geomspace(0.5, 2, part) * alerts
        places += near.astype(int).clip(0, size - 1).tolist()
    cuts = {float(ordered[place]) for place in places}
    if len(positive):
        evenly = np.linspace(0, len(positive) - 1, part).astype(int)
        cuts |= {float(value) for value in positive[evenly]}
    if np.isfinite(margins.cut):
        cuts.add(margins.cut)
    return operating_points(margins, labels, cuts, confidence=confidence)
