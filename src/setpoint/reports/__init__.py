"""One self-contained HTML page of plain results. Computes nothing, never imports torch."""

from setpoint.reports.page import page, report

__all__ = ["page", "report"]
