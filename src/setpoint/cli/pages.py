"""The report page of a result."""

from __future__ import annotations

from typing import Any


def page_of(result: Any) -> bytes:
    """report.html."""
    from setpoint.reports import page

    return page(result).encode()
