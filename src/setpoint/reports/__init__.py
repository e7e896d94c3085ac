"""One self-contained HTML page of plain results. Computes nothing, never imports torch."""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily
from setpoint.reports.run_page import page

if TYPE_CHECKING:
    from setpoint.reports.scored import report

__all__ = ["page", "report"]

__getattr__ = import_lazily(__name__)
