"""What a threshold does on one split."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import coverage, fpr, precision, recall
from setpoint.results.measured import (
    GoalParts,
    Interval,
    Margins,
    Measured,
    clopper_pearson,
    goal_tables,
    margins,
    measure,
    measure_known,
    tables_of,
)
from setpoint.results.run import RunResult


@dataclass(frozen=True)
class SplitRow:
    """What the threshold does on one split; ``bounds`` in the order of the goal's."""

    name: str
    positives: int
    negatives: int
    bounds: tuple[Measured, ...]
    objective: Measured | None
    fpr: Measured
    recall: Measured
    precision: Measured
    coverage: Measured


def split_row(run: RunResult, name: str, goal: GoalParts, confidence: float) -> SplitRow:
    """The rates of the goal, and the usual ones, with their intervals."""
    split = run.splits[name]
    accepted = margins(split, run.threshold).accepted
    tables = goal_tables(goal, accepted, split.labels, split.groups)
    rates = (measure_known(r, tables, confidence) for r in (fpr, recall, precision, coverage))
    return SplitRow(
        name,
        int(split.labels.sum()),
        int((~split.labels).sum()),
        tuple(measure_known(b.expression, tables, confidence) for b in goal.bounds),
        None if goal.objective is None else measure_known(goal.objective, tables, confidence),
        *rates,
    )


# ------------------------------------------------------------------------------------------------
# The same threshold rules, group by group: does one group pay for the others?


MOST_GROUPS = 20
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
    largest = [group for group, _ in Counter(column.tolist()).most_common(MOST_GROUPS)]
    rows = []
    for group in sorted(largest, key=str):
        mine = np.asarray(column == group)
        tables = tables_of(accepted[mine], y[mine], {})
        rates = (measure(r, tables, confidence) for r in (fpr, recall, precision, coverage))
        rows.append(GroupRow(str(group), int(mine.sum()), *rates))
    return rows


# ------------------------------------------------------------------------------------------------
# What a slightly different threshold would do: more alerts and more found, or fewer of both.


FACTORS = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)


@dataclass(frozen=True)
class Neighbour:
    """One row of the table: a threshold and what it does to the data at hand."""

    threshold: float
    fpr: Measured
    recall: Measured
    precision: Measured
    alerts_per_1000: float
    chosen: bool


def sensitivity(
    margins: Margins,
    labels: Any,
    *,
    confidence: float = 0.95,
    factors: Sequence[float] = FACTORS,
) -> list[Neighbour]:
    """Rates at thresholds that raise ``factors`` times the alerts of the present one.

    The thresholds are scores of these data, from strict to loose; ties may merge some of them.

    Example:
        >>> scores, labels = np.arange(100.0), np.arange(100) >= 95
        >>> [s.alerts_per_1000 for s in sensitivity(Margins(scores, 89.0), labels)]
        [50.0, 70.0, 90.0, 100.0, 110.0, 120.0, 150.0, 200.0]
    """
    y = np.asarray(labels) == 1
    ordered = np.sort(margins.values)[::-1]
    alerts = int(margins.accepted.sum())
    if not np.isfinite(margins.cut):
        return []
    places = {min(len(ordered) - 1, int(max(alerts, 1) * factor)) for factor in factors}
    cuts = {float(ordered[place]) for place in places if place != alerts} | {margins.cut}
    rows: dict[int, Neighbour] = {}
    for cut in sorted(cuts, key=lambda c: (c != margins.cut, -c)):  # the chosen one wins a draw
        accepted = margins.values > cut
        rows.setdefault(int(accepted.sum()), _step(cut, accepted, y, confidence, margins.cut))
    return [rows[count] for count in sorted(rows)]


def _step(cut: float, accepted: Any, labels: Any, confidence: float, chosen: float) -> Neighbour:
    tables = tables_of(accepted, labels, {})
    return Neighbour(
        cut,
        measure(fpr, tables, confidence),
        measure(recall, tables, confidence),
        measure(precision, tables, confidence),
        1000 * float(accepted.mean()),
        cut == chosen,
    )


# ------------------------------------------------------------------------------------------------
# Precision where positives are rarer or more frequent than in the data at hand.


COMMON = (0.5, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Mix:
    """What the same recall and FPR come to when a share ``prevalence`` of the cases is positive."""

    prevalence: float
    precision: float
    alerts_per_1000: float
    own: bool


def at_prevalences(recall: float, fpr: float, own: float) -> list[Mix]:
    """The data's ``own`` prevalence among common ones, from frequent to rare.

    Example:
        >>> [round(m.precision, 2) for m in at_prevalences(0.57, 0.01, 0.5)]
        [0.98, 0.86, 0.37, 0.05]
    """
    if math.isnan(recall) or math.isnan(fpr):
        return []
    shares = sorted({own, *(p for p in COMMON if abs(math.log(p / own)) > 0.1)}, reverse=True)
    mixes = []
    for share in shares:
        found, alarms = share * recall, (1 - share) * fpr
        flagged = found + alarms
        mixes.append(
            Mix(share, found / flagged if flagged else math.nan, 1000 * flagged, share == own)
        )
    return mixes
