"""Pictures and one self-contained HTML page of plain results. Computes nothing, never torch.

The page draws its own SVG; matplotlib is needed only for :func:`draw_roc`.
"""

from setpoint.report.page import page
from setpoint.report.roc import Panel, Series, draw_roc

__all__ = ["Panel", "Series", "draw_roc", "page"]
