"""Results in plain numbers: what a run reached, with intervals, from its scores. Never torch."""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.results.bootstrap import Paired, Summary, gain, paired_bootstrap, summarize
    from setpoint.results.confusion import Confusions
    from setpoint.results.curves import (
        Curve,
        Histogram,
        PrecisionRecall,
        TrainingSeries,
        corner,
        histogram,
        mean_curve,
        pr_curve,
        roc_curve,
        thin,
        tpr_at,
    )
    from setpoint.results.diagnosis import Diagnosis, diagnose
    from setpoint.results.findings import Curves, Findings
    from setpoint.results.measured import (
        Interval,
        Measured,
        clopper_pearson,
        count_decisions,
        measure,
    )
    from setpoint.results.points import OperatingPoint, operating_points, sensitivity
    from setpoint.results.rows import SliceRow, SplitRow, group_rates
    from setpoint.results.run import RunResult, Scored, Verdict

__all__ = [
    "Confusions",
    "Curve",
    "Curves",
    "Diagnosis",
    "Findings",
    "Histogram",
    "Interval",
    "Measured",
    "OperatingPoint",
    "Paired",
    "PrecisionRecall",
    "RunResult",
    "Scored",
    "SliceRow",
    "SplitRow",
    "Summary",
    "TrainingSeries",
    "Verdict",
    "clopper_pearson",
    "corner",
    "count_decisions",
    "diagnose",
    "gain",
    "group_rates",
    "histogram",
    "mean_curve",
    "measure",
    "operating_points",
    "paired_bootstrap",
    "pr_curve",
    "roc_curve",
    "sensitivity",
    "summarize",
    "thin",
    "tpr_at",
]

__getattr__ = import_lazily(__name__)
