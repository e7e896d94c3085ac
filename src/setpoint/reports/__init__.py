"""One self-contained HTML page of plain results. Computes nothing, never imports torch."""

from setpoint.reports.page import page
from setpoint.reports.scored import report

__all__ = ["page", "report"]
