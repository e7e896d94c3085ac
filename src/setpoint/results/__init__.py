"""Results in plain numbers: curves from scores, means and paired gains over seeds. Never torch."""

from setpoint.results.curves import Curve, mean_curve, roc_curve, tpr_at
from setpoint.results.summary import Summary, gain, summarize

__all__ = ["Curve", "Summary", "gain", "mean_curve", "roc_curve", "summarize", "tpr_at"]
