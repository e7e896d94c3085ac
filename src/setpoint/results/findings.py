"""Everything a report says about a run, computed once from its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.class_data import decide
from setpoint.problems import Problem
from setpoint.rates import Bound, Counts, Expression, Where, coverage, precision, recall, top_k
from setpoint.results.bootstrap import AgainstBaseline, against_baseline
from setpoint.results.confusion import Confusions
from setpoint.results.curves import (
    Curve,
    Histogram,
    PrecisionRecall,
    TrainingSeries,
    histogram,
    pr_curve,
    roc_curve,
    training_series,
)
from setpoint.results.measured import GoalParts, Measured, margins, measure, read_goal
from setpoint.results.rows import (
    GroupRow,
    Mix,
    Neighbour,
    SplitRow,
    at_prevalences,
    group_rates,
    sensitivity,
    split_row,
    widest_gap,
)
from setpoint.results.run import ClassRun, RunResult, Scored, Verdict, read_verdict


@dataclass(frozen=True)
class Curves:
    """The curves of one model on the judged split."""

    name: str
    roc: Curve
    pr: PrecisionRecall


@dataclass(frozen=True)
class Findings:
    """All numbers of a report. ``judged`` is the row of the split nearest to new data."""

    run: RunResult
    goal: GoalParts
    verdict: Verdict
    splits: tuple[SplitRow, ...]
    judged: SplitRow
    curves: tuple[Curves, ...]
    sensitivity: tuple[Neighbour, ...]
    histogram: Histogram
    comparison: AgainstBaseline | None
    groups: tuple[GroupRow, ...]
    history: tuple[TrainingSeries, ...]

    @property
    def prevalence(self) -> list[Mix]:
        """Precision at other shares of positives than the judged split has."""
        row = self.judged
        if not row.positives or not row.negatives:
            return []
        own = row.positives / (row.positives + row.negatives)
        return at_prevalences(row.recall.value, row.fpr.value, own)

    @property
    def gaps(self) -> dict[str, Measured]:
        """The widest difference between two groups, by rate."""
        columns = {
            "false positive rate": [g.fpr for g in self.groups],
            "recall": [g.recall for g in self.groups],
            "alert rate": [g.coverage for g in self.groups],
        }
        sure = self.verdict.confidence
        found = {name: widest_gap(rates, sure) for name, rates in columns.items()}
        return {name: gap for name, gap in found.items() if gap is not None}

    @property
    def one_threshold(self) -> bool:
        """Whether everyone has the same threshold; if not, scores are shown as margins to it."""
        return not isinstance(self.run.threshold, Mapping)

    @property
    def cut(self) -> float | None:
        """Where the threshold stands among the values of the histogram, if anywhere."""
        if isinstance(self.run.threshold, Mapping):
            return 0.0
        value = self.run.threshold
        return None if value is None or not np.isfinite(value) else float(value)

    @property
    def bound(self) -> Bound | None:
        """The first bound of the goal: the one that pictures mark."""
        return next((b for b in self.goal.bounds if isinstance(b, Bound)), None)


def findings(run: RunResult) -> Findings:
    """Measure ``run``: every split, the curves, the neighbourhood of the threshold, the rest."""
    goal, verdict = read_goal(run.goal), read_verdict(run.certificate)
    rows = {name: split_row(run, name, goal, verdict.confidence) for name in run.splits}
    split = run.splits[run.judged]
    here = margins(split, run.threshold)
    cut = here.cut if np.isfinite(here.cut) else None
    groups = []
    if split.groups is not None:
        groups = group_rates(
            here.accepted, split.labels, split.groups, confidence=verdict.confidence
        )
    return Findings(
        run,
        goal,
        verdict,
        tuple(rows.values()),
        rows[run.judged],
        _curves(run),
        tuple(sensitivity(here, split.labels, confidence=verdict.confidence)),
        histogram(here.values, split.labels, show=cut),
        against_baseline(run, goal, verdict.confidence),
        tuple(groups),
        tuple(training_series(run.history)),
    )


def _curves(run: RunResult) -> tuple[Curves, ...]:
    """Ours first; none if the judged split has one class only."""
    split = run.splits[run.judged]
    if not 0 < split.labels.sum() < split.labels.size:
        return ()
    named = [(run.method or "this model", margins(split, run.threshold).values)]
    if run.baseline is not None and run.judged in run.baseline:
        named.append((run.baseline_name, run.baseline[run.judged].scores))
    return tuple(
        Curves(name, roc_curve(s, split.labels), pr_curve(s, split.labels)) for name, s in named
    )


# ------------------------------------------------------------------------------------------------
# Everything a report says about a run for several classes, computed once from its scores.


@dataclass(frozen=True)
class ClassRow:
    """One class on the judged split, against the rest, with the shifts."""

    name: str
    count: int
    shift: float
    recall: Measured
    precision: Measured
    coverage: Measured


@dataclass(frozen=True)
class ClassSplit:
    """What the goal asks for on one split, with the shifts and (``before``) without them."""

    name: str
    count: int
    objective: float
    before: float
    targets: tuple[float, ...]
    theirs: float | None
    """The objective of the other model, with its own shifts."""


@dataclass(frozen=True)
class ClassFindings:
    """All numbers of a report. ``judged`` is the split nearest to new data."""

    run: ClassRun
    problem: Problem
    verdict: Verdict
    splits: tuple[ClassSplit, ...]
    judged: ClassSplit
    confusions: Confusions
    classes: tuple[ClassRow, ...]
    history: tuple[TrainingSeries, ...]


def class_findings(run: ClassRun) -> ClassFindings:
    """Measure ``run``: every split, every class, who is taken for whom."""
    problem, verdict = Problem.parse(run.goal), read_verdict(run.certificate)
    splits = {name: _split(run, problem, name) for name in run.splits}
    part = run.splits[run.judged]
    before, after = (decide(part.scores, t) for t in (np.zeros(len(run.names)), run.shifts))
    confusions = Confusions.of(tuple(run.names), part.labels, before, after)
    return ClassFindings(
        run,
        problem,
        verdict,
        tuple(splits.values()),
        splits[run.judged],
        confusions,
        tuple(_rows(run, confusions, verdict.confidence)),
        tuple(training_series(run.history)),
    )


def _split(run: ClassRun, problem: Problem, name: str) -> ClassSplit:
    part = run.splits[name]
    zero = np.zeros(len(run.names))
    wanted = (problem.objective, *(target.expression for target in problem.subject_to))
    found = [_value(run, e, part, part.scores, run.shifts) for e in wanted]
    theirs = None
    if run.baseline is not None and name in run.baseline:
        shifts = zero if run.baseline_shifts is None else run.baseline_shifts
        theirs = _value(run, problem.objective, part, run.baseline[name], shifts)
    before = _value(run, problem.objective, part, part.scores, zero)
    return ClassSplit(name, len(part.labels), found[0], before, tuple(found[1:]), theirs)


def _value(run: ClassRun, expression: Expression, part: Scored, scores: Any, shifts: Any) -> float:
    """An expression on a split; NaN where it has no value, such as a class that is not there."""
    groups = None if part.groups is None else {run.group: part.groups}
    classes = top_k(1) >= 0  # accuracy by itself would be that of two
    problem = Problem(maximize=expression, subject_to=classes)
    try:
        return problem.evaluate(scores, part.labels, shifts, groups=groups, classes=run.names)
    except ValueError:
        return float("nan")


def _rows(run: ClassRun, confusions: Confusions, confidence: float) -> Any:
    """Every class against the rest."""
    matrix = confusions.after
    total = int(matrix.sum())
    for i, name in enumerate(run.names):
        tp, taken, there = (int(x) for x in (matrix[i, i], matrix[:, i].sum(), matrix[i].sum()))
        others = total - there
        counts = Counts(tp, taken - tp, there - tp, others - taken + tp, there, others)
        tables: dict[Where, Counts] = {(): counts}
        rates = (measure(rate, tables, confidence) for rate in (recall, precision, coverage))
        yield ClassRow(name, there, run.shifts[i], *rates)
