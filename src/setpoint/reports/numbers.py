"""Numbers as a person reads them: as many digits as matter."""

from __future__ import annotations

import math

from setpoint.reports.html import Html, join, tag
from setpoint.results.measured import Interval, Measured

MINUS, NOTHING = "\u2212", "\u2013"


def percent(share: float) -> str:
    """A share in per cent.

    Example:
        >>> [percent(x) for x in (0.00012, 0.0043, 0.012, 0.5, 0.9996, 1.0)]
        ['0.012 %', '0.43 %', '1.20 %', '50.0 %', '99.96 %', '100 %']
    """
    if math.isnan(share):
        return NOTHING
    value = 100 * share
    if value in (0.0, 100.0):
        return f"{value:g} %"
    size = abs(value)
    if size >= 10:
        return f"{value:.{1 if size < 99.95 else 2}f} %"
    return f"{value:.2f} %" if size >= 0.1 else f"{value:.2g} %"


def level(share: float) -> str:
    """A level that was asked for, with its own digits: ``1 %``."""
    return f"{100 * share:.10g} %"


def points(difference: float) -> str:
    """A difference of two shares, in points, with its sign."""
    return f"{100 * difference:+.1f}".replace("-", MINUS)


def between(interval: Interval | None) -> str:
    """``0.21 % to 0.84 %``."""
    return "" if interval is None else f"{percent(interval.low)} to {percent(interval.high)}"


def threshold(value: float) -> str:
    """A threshold as far as it helps a reader; the JSON block has all its digits."""
    if math.isinf(value):
        return "everyone is flagged" if value < 0 else "no threshold"
    return f"{value:.5g}".replace("-", MINUS)


def whole(value: float) -> str:
    """``12,345``."""
    return f"{value:,.0f}"


def ends(rate: Measured) -> str:
    """The interval of a rate in its own units: per cent for a share, else plain numbers."""
    if rate.interval is None or rate.total is not None:
        return between(rate.interval)
    return f"{_plain(rate.interval.low)} to {_plain(rate.interval.high)}"


def measured(rate: Measured) -> Html:
    """A cell: the rate, its interval and the counts below."""
    lines = [ends(rate)]
    if rate.total is not None and rate.count is not None:
        lines.append(f"{whole(rate.count)} of {whole(rate.total)}")
    value = percent(rate.value) if rate.total is not None else _plain(rate.value)
    return join(value, *(tag("small", line) for line in lines if line))


def _plain(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.4g}".replace("-", MINUS)
