"""Results in plain numbers: what a run reached, with intervals, from its scores. Never torch."""

from setpoint.results.bootstrap import Paired, Summary, gain, paired_bootstrap, summarize
from setpoint.results.curves import (
    Curve,
    Histogram,
    PrecisionRecall,
    histogram,
    mean_curve,
    pr_curve,
    roc_curve,
    tpr_at,
)
from setpoint.results.diagnosis import Diagnosis, diagnose
from setpoint.results.findings import ClassFindings, Findings, class_findings, findings
from setpoint.results.measured import Interval, Measured, clopper_pearson, measure
from setpoint.results.rows import GroupRow, Neighbour, group_rates, sensitivity
from setpoint.results.run import ClassRun, RunResult, Scored

__all__ = [
    "ClassFindings",
    "ClassRun",
    "Curve",
    "Diagnosis",
    "Findings",
    "GroupRow",
    "Histogram",
    "Interval",
    "Measured",
    "Neighbour",
    "Paired",
    "PrecisionRecall",
    "RunResult",
    "Scored",
    "Summary",
    "class_findings",
    "clopper_pearson",
    "diagnose",
    "findings",
    "gain",
    "group_rates",
    "histogram",
    "mean_curve",
    "measure",
    "paired_bootstrap",
    "pr_curve",
    "roc_curve",
    "sensitivity",
    "summarize",
    "tpr_at",
]
