"""Results in plain numbers: what a run reached, with intervals, from its scores. Never torch."""

from setpoint.results.bootstrap import Paired, paired_bootstrap
from setpoint.results.class_findings import ClassFindings, class_findings
from setpoint.results.class_run import ClassRun
from setpoint.results.curves import Curve, mean_curve, roc_curve, tpr_at
from setpoint.results.described import Scored
from setpoint.results.diagnosis import Diagnosis, diagnose
from setpoint.results.findings import Findings, findings
from setpoint.results.groups import GroupRow, group_rates
from setpoint.results.histograms import Histogram, histogram
from setpoint.results.intervals import Interval, clopper_pearson
from setpoint.results.measured import Measured, measure
from setpoint.results.pr import PrecisionRecall, pr_curve
from setpoint.results.run import RunResult
from setpoint.results.sensitivity import Neighbour, sensitivity
from setpoint.results.summary import Summary, gain, summarize

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
