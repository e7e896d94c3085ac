"""Thresholds to move through on the page: everything is worked out here, the script only shows it.

The script (``templates/explorer.js``) has no arithmetic but that of costs, which a reader may type
in. It runs under a content security policy that names its hash, so nothing else can run.
"""

from __future__ import annotations

from typing import Any

from setpoint.reports.charts import threshold_plot
from setpoint.reports.svg import Plot
from setpoint.reports.text import (
    between,
    cases_per_unit,
    counts,
    cut,
    money,
    percent,
    signed,
    thousands,
)
from setpoint.reports.wording import headline
from setpoint.results import Findings, Measured, OperatingPoint

STOPS_OF_A_GROUP = 40
"""How many thresholds of a single group one can move through."""


def explorer(found: Findings) -> dict[str, Any] | None:
    """What the script needs, as JSON knows it; None if there are no thresholds to move through.

    ``views`` are everyone, then each group (``found.by_group``) with its own threshold. Their
    ``stops`` go from the lowest threshold to the highest. Each has its ``cut``, its ``state``
    (certified, holds or off), the ``text`` of the badge, the place ``x`` of its line in the
    picture, its ``rows`` (for each figure the value and two small lines), and ``errors``: counts
    of misses and false alarms, and of both the intervals as shares of all cases.
    """
    if found.shown is None:
        return None
    shown = {"all": found, **found.by_group}
    return {
        "unit": "a day" if found.days else "per 1,000 cases",
        "costs": found.run.costs,
        "views": [_view(found, own, name) for name, own in shown.items() if own.shown is not None],
    }


def _view(found: Findings, own: Findings, name: str) -> dict[str, Any]:
    """The thresholds of everyone, or of one group, to move through."""
    stops, start, plot = own.stops[::-1], own.shown, threshold_plot(own)
    assert start is not None
    if own is not found:
        every = -(-len(stops) // STOPS_OF_A_GROUP)
        stops = tuple(p for i, p in enumerate(stops) if i % every == 0 or p is start)
    row = own.judged
    return {
        "name": name,
        "threshold": "Threshold" if own.one_threshold else "Shift of thresholds",
        "counts": [thousands(row.negatives), thousands(row.positives)],
        "start": stops.index(start),
        "certified": _is_certified(found, start),
        "cases": row.count,
        "per": cases_per_unit(own.judged.count, own.days),
        "stops": [_stop(found, own, plot, point) for point in stops],
    }


def _is_certified(found: Findings, point: OperatingPoint) -> bool:
    return point.chosen and found.verdict.status == "certified"


def _stop(found: Findings, own: Findings, plot: Plot, point: OperatingPoint) -> dict[str, Any]:
    missed, flagged = point.errors(found.verdict.confidence)
    state, text = _badge(found, own, point)
    return {
        "cut": point.threshold,
        "threshold": cut(point.threshold),
        "x": round(plot.at(point.threshold, plot.y.low)[0], 1),
        "state": state,
        "text": text,
        "rows": figures(own, point),
        "errors": [
            point.misses,
            point.fpr.count or 0,
            *(float(f"{end:.7g}") for ends in (missed, flagged) for end in ends),
        ],
    }


def figures(found: Findings, point: OperatingPoint) -> list[list[str]]:
    """Alerts, misses, false positive rate and precision: value, interval, counts."""
    return [
        _alerts(found, point),
        _misses(point),
        _rate(point.fpr),
        _rate(point.precision),
    ]


def _alerts(found: Findings, point: OperatingPoint) -> list[str]:
    rate, per = point.coverage, cases_per_unit(found.judged.count, found.days)
    low, high = (f"{per * end:,.1f}" for end in rate.interval or (0.0, 1.0))
    among = f"{found.days:,} days" if found.days else f"{thousands(rate.total or 0)} cases"
    number = thousands(rate.count or 0)
    return [f"{per * rate.value:,.1f}", f"{low} to {high}", f"{number} in {among}"]


def _misses(point: OperatingPoint) -> list[str]:
    share, total = point.missed, thousands(point.recall.total or 0)
    return [thousands(point.misses), f"{percent(share.value)} of {total}", between(share.interval)]


def _rate(rate: Measured) -> list[str]:
    return [percent(rate.value), between(rate.interval), counts(rate)]


def _badge(found: Findings, own: Findings, point: OperatingPoint) -> tuple[str, str]:
    """How a threshold stands to the certificate, and what moving there does."""
    start = own.shown
    assert start is not None
    alone = own is not found and not found.proves_groups
    if _is_certified(found, point) and alone:
        return "off", "Certified for all cases together, not for this group by itself."
    if _is_certified(found, point):
        state, sign = (
            ("off", "Certified, but: ") if found.doubts else ("certified", "✓ Certified. ")
        )
        return state, f"{sign}{headline(found).striptags()}."
    if not _is_certified(found, start):
        return "off", "Nothing is certified: these are measurements"
    stricter = point.threshold > start.threshold
    if found.safe_side == ("stricter" if stricter else "looser") and not alone:
        return "holds", f"The promise holds here, too ({found.safe_side}). {_moved(point, start)}"
    return "off", f"Not certified here. {_moved(point, start)}"


def _moved(point: OperatingPoint, start: OperatingPoint) -> str:
    """What is different from the certified threshold."""
    alerts = signed(point.alerts_per_1000 - start.alerts_per_1000, 1)
    parts = [f"{alerts} alerts per 1,000", f"{signed(point.misses - start.misses)} misses"]
    for label, now, before in (
        ("false positive rate", point.fpr.value, start.fpr.value),
        ("precision", point.precision.value, start.precision.value),
    ):
        if now == now and before == before:  # no NaN
            parts.append(f"{label} {signed(100 * (now - before), 1)} points")
    return f"Against the certified threshold: {', '.join(parts)}."


def costs_of(found: Findings, point: OperatingPoint) -> list[str] | None:
    """The cost of 1,000 cases, or of a day where dates are known: value, interval."""
    cost = found.cost(point)
    if cost is None or cost.interval is None:
        return None
    per = cases_per_unit(found.judged.count, found.days)
    return [money(per * cost.value), " to ".join(money(per * end) for end in cost.interval)]
