"""A rate as it was measured: value, interval, and the counts behind both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.regions import interval_at, is_plain_share
from setpoint.rates import Bound, Counts, Expression, Where
from setpoint.results.intervals import Interval, clopper_pearson

Masks = Mapping[Where, NDArray[np.bool_]]


@dataclass(frozen=True)
class Measured:
    """A value with its interval; ``count`` of ``total`` if it is a share of examples.

    ``value`` is NaN for 0/0, and ``interval`` None where there is none (0/0, a number of heads).
    """

    value: float
    interval: Interval | None
    count: int | None
    total: int | None

    def against(self, bound: Bound) -> str:
        """What the data say about ``bound``: ``holds``, ``met``, ``missed`` or ``broken``.

        The outer two are beyond chance (the whole interval lies on one side), the inner two not.
        """
        if math.isnan(self.value):
            return "missed"
        sign = 1.0 if bound.sense == "<=" else -1.0
        low, high = self.interval or (self.value, self.value)
        nearest, farthest = sorted((sign * low, sign * high))
        if self.interval is not None and farthest <= sign * bound.level:
            return "holds"
        if self.interval is not None and nearest > sign * bound.level:
            return "broken"
        return "met" if sign * self.value <= sign * bound.level + 1e-12 else "missed"


def tables_of(
    accepted: NDArray[np.bool_], labels: NDArray[np.bool_], slices: Masks
) -> dict[Where, Counts]:
    """The four counts on everyone, ``()``, and on each of ``slices`` (masks of rows)."""
    everyone: Masks = {(): np.ones(len(labels), dtype=bool)}
    tables = {}
    for where, rows in {**everyone, **slices}.items():
        positives, negatives = int((rows & labels).sum()), int((rows & ~labels).sum())
        tp = int((rows & labels & accepted).sum())
        fp = int((rows & ~labels & accepted).sum())
        tables[where] = Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)
    return tables


def measure(
    expression: Expression, tables: Mapping[Where, Counts], confidence: float = 0.95
) -> Measured:
    """The value of ``expression`` on ``tables``, with an interval that holds for every sample size.

    Of a plain share, an F score, an error it is that of Clopper and Pearson; of a gap or another
    combination it is made of those of its parts.

    Example:
        >>> from setpoint.rates import fpr
        >>> m = measure(fpr, {(): Counts(7, 0, 3, 299, 10, 299)})
        >>> m.value, round(m.interval.high, 4), m.total
        (0.0, 0.01, 299)
    """
    if not is_plain_share(expression):
        with np.errstate(all="ignore"):
            value = float(expression.of(tables))
        ends = interval_at(expression, tables, 1 - confidence) if np.isfinite(value) else None
        return Measured(value, None if ends is None else Interval(*ends), None, None)
    table = tables[expression.where]
    count, total = int(expression.numerator.of(table)), int(expression.denominator.of(table))
    if total == 0:
        return Measured(math.nan, None, 0, 0)
    return Measured(count / total, clopper_pearson(count, total, confidence), count, total)
