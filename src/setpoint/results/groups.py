"""The same threshold rules, group by group: does one group pay for the others?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import coverage, fpr, precision, recall
from setpoint.results.intervals import Interval, clopper_pearson
from setpoint.results.measured import Measured, measure, tables_of

MOST = 20
"""More groups than this are not shown one by one."""


@dataclass(frozen=True)
class GroupRow:
    """Rates of one group, each with its interval."""

    name: str
    count: int
    fpr: Measured
    recall: Measured
    precision: Measured
    coverage: Measured


def widest_gap(rates: Sequence[Measured], confidence: float = 0.95) -> Measured | None:
    """The largest difference between two groups, with bounds from below and above.

    All groups' intervals hold together (the risk is shared by all their ends), so it does not
    matter that the two groups were picked by looking. None if fewer than two groups have the rate.

    Example:
        >>> rows = group_rates(np.arange(200) < 100, np.ones(200), np.repeat(["a", "b"], 100))
        >>> gap = widest_gap([row.recall for row in rows])
        >>> gap.value, round(gap.interval.low, 3)
        (1.0, 0.914)
    """
    known = [rate for rate in rates if rate.total]
    if len(known) < 2:
        return None
    sure = 1 - (1 - confidence) / (2 * len(known))
    ends = [clopper_pearson(rate.count or 0, rate.total or 0, sure) for rate in known]
    values = [rate.value for rate in known]
    low = max(0.0, max(end.low for end in ends) - min(end.high for end in ends))
    high = max(end.high for end in ends) - min(end.low for end in ends)
    return Measured(max(values) - min(values), Interval(low, high), None, None)


def group_rates(
    accepted: NDArray[np.bool_], labels: Any, groups: Any, *, confidence: float = 0.95
) -> list[GroupRow]:
    """Rates of the largest groups, in the order of their names.

    Example:
        >>> rows = group_rates(np.array([True, False]), [1, 1], ["b", "a"])
        >>> [(row.name, row.recall.value) for row in rows]
        [('a', 0.0), ('b', 1.0)]
    """
    y = np.asarray(labels) == 1
    column = np.asarray(groups)
    largest = [group for group, _ in Counter(column.tolist()).most_common(MOST)]
    rows = []
    for group in sorted(largest, key=str):
        mine = np.asarray(column == group)
        tables = tables_of(accepted[mine], y[mine], {})
        rates = (measure(r, tables, confidence) for r in (fpr, recall, precision, coverage))
        rows.append(GroupRow(str(group), int(mine.sum()), *rates))
    return rows
