"""Everything a report says about a run for several classes, computed once from its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.class_data import decide
from setpoint.problems import Problem
from setpoint.rates import Counts, Expression, Where, coverage, precision, recall, top_k
from setpoint.results.class_run import ClassRun
from setpoint.results.confusion import Confusions
from setpoint.results.described import Scored
from setpoint.results.history import Series, series
from setpoint.results.measured import Measured, measure
from setpoint.results.verdict import Verdict, read_verdict


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
    history: tuple[Series, ...]


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
        tuple(series(run.history)),
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
