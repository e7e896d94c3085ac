"""Pictures of plain results. Computes nothing; needs matplotlib only when something is drawn."""

from setpoint.report.roc import Panel, Series, draw_roc

__all__ = ["Panel", "Series", "draw_roc"]
