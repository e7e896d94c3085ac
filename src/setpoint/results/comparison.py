"""Ours beside a baseline whose threshold was tuned: as deployed, and at the same bound."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.problems import PER_GROUP, Infeasible
from setpoint.rates import fpr, precision, recall
from setpoint.results.bootstrap import Paired, paired_bootstrap
from setpoint.results.decisions import margins
from setpoint.results.described import Scored
from setpoint.results.goal import Goal, counts, measured
from setpoint.results.measured import Measured
from setpoint.results.run import RunResult, Threshold


@dataclass(frozen=True)
class Deployed:
    """What one model does on the judged split with the threshold it would be shipped with."""

    name: str
    threshold: Threshold
    bounds: tuple[Measured, ...]
    fpr: Measured
    recall: Measured
    precision: Measured


@dataclass(frozen=True)
class Comparison:
    """Both models as deployed, and the paired difference where both meet the bound."""

    ours: Deployed
    theirs: Deployed
    paired: Paired | None


def compare(run: RunResult, goal: Goal, confidence: float) -> Comparison | None:
    """Compare on the judged split; None without a baseline there."""
    if run.baseline is None or run.judged not in run.baseline:
        return None
    mine, other = run.splits[run.judged], run.baseline[run.judged]
    other = Scored(other.scores, other.labels, mine.groups)
    tuned = run.baseline_threshold
    if tuned is None:
        tuned = _tuned(run, goal)
    paired = None
    if goal.problem is not None and goal.problem.thresholds != PER_GROUP and _both(mine):
        paired = paired_bootstrap(
            goal.problem,
            mine.scores,
            other.scores,
            mine.labels,
            groups=mine.groups,
            confidence=confidence,
        )
    return Comparison(
        deployed(run.method or "this model", mine, run.threshold, goal, confidence),
        deployed(run.baseline_name, other, tuned, goal, confidence),
        paired,
    )


def deployed(
    name: str, split: Scored, threshold: Threshold, goal: Goal, confidence: float
) -> Deployed:
    """The rates of one model at its threshold."""
    accepted = margins(split, threshold).accepted
    tables = counts(goal, accepted, split.labels, split.groups)
    bounds = tuple(measured(b.expression, tables, confidence) for b in goal.bounds)
    rates = (measured(rate, tables, confidence) for rate in (fpr, recall, precision))
    return Deployed(name, threshold, bounds, *rates)


def _tuned(run: RunResult, goal: Goal) -> float | None:
    """The best threshold on data set aside for choosing: what people do without certificates."""
    baseline = run.baseline or {}
    name = next((n for n in ("validation", "calibration", "train") if n in baseline), None)
    if name is None or goal.problem is None or goal.problem.thresholds == PER_GROUP:
        return None
    split = baseline[name]
    try:
        found = goal.problem.choose(split.scores, split.labels, groups=run.splits[name].groups)
    except Infeasible:
        return None
    return found.thresholds[0] if len(found.thresholds) == 1 else None


def _both(split: Scored) -> bool:
    return bool(split.labels.any()) and not bool(split.labels.all())
