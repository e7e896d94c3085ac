"""What a threshold does on one split."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.rates import coverage, fpr, precision, recall
from setpoint.results.decisions import margins
from setpoint.results.goal import Goal, counts, measured
from setpoint.results.measured import Measured
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


def split_row(run: RunResult, name: str, goal: Goal, confidence: float) -> SplitRow:
    """The rates of the goal, and the usual ones, with their intervals."""
    split = run.splits[name]
    accepted = margins(split, run.threshold).accepted
    tables = counts(goal, accepted, split.labels, split.groups)
    rates = (measured(r, tables, confidence) for r in (fpr, recall, precision, coverage))
    return SplitRow(
        name,
        int(split.labels.sum()),
        int((~split.labels).sum()),
        tuple(measured(b.expression, tables, confidence) for b in goal.bounds),
        None if goal.objective is None else measured(goal.objective, tables, confidence),
        *rates,
    )
