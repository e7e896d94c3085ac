"""Rows of the report's tables: splits, groups, classes, periods, other mixes of classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.times import period_names
from setpoint.problems import Problem
from setpoint.rates import Counts, Expression, top_k
from setpoint.results.confusion import Confusions
from setpoint.results.measured import (
    UNKNOWN,
    GoalParts,
    Interval,
    Measured,
    clopper_pearson,
    count_decisions,
    margins,
)
from setpoint.results.points import usual_rates
from setpoint.results.run import RunResult, Scored, Threshold

MOST_SHOWN = 20
"""More groups than this are not shown one by one."""
LATEST_PERIODS = 62
"""Two months of days; of more periods the latest are shown."""
_PREVALENCES = (0.5, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class SplitRow:
    """What the decisions come to on one split.

    Attributes:
        name: Of the split.
        count: How many examples it has.
        bounds: What the goal bounds, in its order.
        objective: What the goal makes large or small; None for bounds alone and areas.
        before: For several classes, the objective without the shifts.
        theirs: For several classes, the objective of the baseline with its own shifts.
        positives: For two classes, as are the rates below.
    """

    name: str
    count: int
    bounds: tuple[Measured, ...]
    objective: Measured | None
    before: Measured | None = None
    theirs: Measured | None = None
    positives: int = 0
    negatives: int = 0
    fpr: Measured = UNKNOWN
    recall: Measured = UNKNOWN
    precision: Measured = UNKNOWN
    coverage: Measured = UNKNOWN

    @property
    def wanted(self) -> Measured:
        """What is shown beside the bounds: the objective, or recall if there is none."""
        return self.recall if self.objective is None else self.objective


def split_row(
    name: str, split: Scored, threshold: Threshold, goal: GoalParts, confidence: float
) -> SplitRow:
    """The rates of the goal and the usual ones at ``threshold``, for two classes."""
    tables = goal.tables(margins(split, threshold).accepted, split.labels, split.groups)
    positives = int(split.labels.sum())
    return SplitRow(
        name,
        len(split.labels),
        tuple(goal.measure(bound.expression, tables, confidence) for bound in goal.bounds),
        None if goal.objective is None else goal.measure(goal.objective, tables, confidence),
        None,
        None,
        positives,
        len(split.labels) - positives,
        *usual_rates(tables[()], confidence),
    )


def class_split_row(run: RunResult, name: str, goal: GoalParts) -> SplitRow:
    """The goal on one split with the shifts and without them, for several classes."""
    split, objective = run.splits[name], goal.objective
    zero = (0.0,) * len(run.classes)

    def value(expression: Expression | None, scored: Scored, shifts: Threshold) -> Measured | None:
        return None if expression is None else _class_value(run, expression, scored, shifts)

    bounds = (value(bound.expression, split, run.threshold) for bound in goal.bounds)
    theirs = None
    if run.baseline is not None and name in run.baseline:
        shifts = zero if run.baseline_threshold is None else run.baseline_threshold
        theirs = value(objective, run.baseline[name], shifts)
    return SplitRow(
        name,
        len(split.labels),
        tuple(bound for bound in bounds if bound is not None),
        value(objective, split, run.threshold),
        value(objective, split, zero),
        theirs,
    )


def _class_value(
    run: RunResult, expression: Expression, split: Scored, shifts: Threshold
) -> Measured:
    """An expression on a split; NaN where it has no value, such as for a class that is absent."""
    groups = None if split.groups is None else {run.group: split.groups}
    classes = top_k(1) >= 0  # accuracy by itself would be that of two
    problem = Problem(maximize=expression, subject_to=classes)
    try:
        found = problem.evaluate(
            split.scores, split.labels, shifts, groups=groups, classes=run.classes
        )
    except ValueError:
        return UNKNOWN
    return Measured(float(found))


@dataclass(frozen=True)
class SliceRow:
    """Rates of one group, or of one class against the rest (with its shift), on one split."""

    name: str
    count: int
    fpr: Measured
    recall: Measured
    precision: Measured
    coverage: Measured
    shift: float | None = None


def group_rates(
    accepted: NDArray[np.bool_], labels: Any, groups: Any, *, confidence: float = 0.95
) -> list[SliceRow]:
    """Rates of the largest groups, in the order of their names.

    Examples:
        >>> rows = group_rates(np.array([True, False]), [1, 1], ["b", "a"])
        >>> [(row.name, row.recall.value) for row in rows]
        [('a', 0.0), ('b', 1.0)]
    """
    return _slice_rows(accepted, labels, group_masks(groups), confidence)


def group_masks(groups: Any) -> dict[str, NDArray[np.bool_]]:
    """Which rows belong to each of the largest groups, in the order of their names."""
    column = np.asarray(groups)
    largest = [group for group, _ in Counter(column.tolist()).most_common(MOST_SHOWN)]
    return {str(group): np.asarray(column == group) for group in sorted(largest, key=str)}


def period_rates(
    accepted: NDArray[np.bool_],
    labels: Any,
    times: NDArray[Any],
    *,
    by: str | None = None,
    confidence: float = 0.95,
) -> list[SliceRow]:
    """Rates of the latest periods, in the order of time.

    Examples:
        >>> days = np.array(["2026-01-31", "2026-02-01"], "datetime64[s]")
        >>> [row.name for row in period_rates(np.array([True, False]), [1, 1], days, by="month")]
        ['2026-01', '2026-02']
    """
    return _slice_rows(accepted, labels, period_masks(times, by), confidence)


def period_masks(times: NDArray[Any], by: str | None = None) -> dict[str, NDArray[np.bool_]]:
    """Which rows belong to each of the latest periods, in the order of time.

    ``by`` is the length of a period; without it the shortest that makes a readable table.
    """
    lengths = (by,) if by else ("day", "week", "month")
    for length in lengths:
        column = period_names(times, length)
        names, first = np.unique(column, return_index=True)
        if len(names) <= LATEST_PERIODS // 2:
            break
    latest = names[np.argsort(times[first], kind="stable")][-LATEST_PERIODS:]
    return {str(name): np.asarray(column == name) for name in latest}


def _slice_rows(
    accepted: NDArray[np.bool_],
    labels: Any,
    masks: Mapping[str, NDArray[np.bool_]],
    confidence: float,
) -> list[SliceRow]:
    y, rows = np.asarray(labels) == 1, []
    for name, mine in masks.items():
        table = count_decisions(accepted[mine], y[mine])
        rows.append(SliceRow(name, int(mine.sum()), *usual_rates(table, confidence)))
    return rows


def class_rates(run: RunResult, confusions: Confusions, confidence: float) -> list[SliceRow]:
    """Every class against the rest, with the shifts; ``count`` is that of the class alone."""
    matrix, rows = confusions.after, []
    for i, name in enumerate(run.classes):
        tp, taken, there = (int(x) for x in (matrix[i, i], matrix[:, i].sum(), matrix[i].sum()))
        others = int(matrix.sum()) - there
        table = Counts(tp, taken - tp, there - tp, others - taken + tp, there, others)
        rows.append(SliceRow(name, there, *usual_rates(table, confidence), run.shifts[i]))
    return rows


def widest_gap(rates: Sequence[Measured], confidence: float = 0.95) -> Measured | None:
    """The largest difference between two groups, with a two-sided interval.

    All groups' intervals hold together (the risk is shared by all their ends), so it does not
    matter that the two groups were picked by looking. None if fewer than two groups have the rate.

    Examples:
        >>> rows = group_rates(np.arange(200) < 100, np.ones(200), np.repeat(["a", "b"], 100))
        >>> gap = widest_gap([row.recall for row in rows])
        >>> gap.value, round(gap.interval.low, 3)
        (1.0, 0.914)
    """
    known = [rate for rate in rates if rate.total]
    if len(known) < 2:
        return None
    sure = 1 - (1 - confidence) / len(known)
    ends = [clopper_pearson(rate.count or 0, rate.total or 0, sure) for rate in known]
    values = [rate.value for rate in known]
    low = max(0.0, max(end.low for end in ends) - min(end.high for end in ends))
    high = max(end.high for end in ends) - min(end.low for end in ends)
    return Measured(max(values) - min(values), Interval(low, high))


@dataclass(frozen=True)
class Mix:
    """What the same recall and FPR come to when a share ``prevalence`` of the cases is positive."""

    prevalence: float
    precision: float
    alerts_per_1000: float
    own: bool


def at_prevalences(recall: float, fpr: float, own: float) -> list[Mix]:
    """The data's ``own`` prevalence among common ones, from frequent to rare.

    Examples:
        >>> [round(m.precision, 2) for m in at_prevalences(0.57, 0.01, 0.5)]
        [0.98, 0.86, 0.37, 0.05]
    """
    if math.isnan(recall) or math.isnan(fpr):
        return []
    shares = sorted({own, *(p for p in _PREVALENCES if abs(math.log(p / own)) > 0.1)}, reverse=True)
    mixes = []
    for share in shares:
        found, alarms = share * recall, (1 - share) * fpr
        flagged = found + alarms
        mixes.append(
            Mix(share, found / flagged if flagged else math.nan, 1000 * flagged, share == own)
        )
    return mixes
