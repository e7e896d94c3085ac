"""The same threshold rules, group by group: does one group pay for the others?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import coverage, fpr, precision, recall
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
