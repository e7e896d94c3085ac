"""Everything a report says about a run, computed once from its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from setpoint.rates import Bound
from setpoint.results.comparison import Comparison, compare
from setpoint.results.curves import Curve, roc_curve
from setpoint.results.decisions import margins
from setpoint.results.goal import Goal, read_goal
from setpoint.results.groups import GroupRow, group_rates, widest_gap
from setpoint.results.histograms import Histogram, histogram
from setpoint.results.history import Series, series
from setpoint.results.measured import Measured
from setpoint.results.pr import PrecisionRecall, pr_curve
from setpoint.results.prevalence import Mix, at_prevalences
from setpoint.results.rows import SplitRow, split_row
from setpoint.results.run import RunResult
from setpoint.results.sensitivity import Neighbour, sensitivity
from setpoint.results.verdict import Verdict, read_verdict


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
    goal: Goal
    verdict: Verdict
    splits: tuple[SplitRow, ...]
    judged: SplitRow
    curves: tuple[Curves, ...]
    sensitivity: tuple[Neighbour, ...]
    histogram: Histogram
    comparison: Comparison | None
    groups: tuple[GroupRow, ...]
    history: tuple[Series, ...]

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
        compare(run, goal, verdict.confidence),
        tuple(groups),
        tuple(series(run.history)),
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
