"""What a monitor says: the status line, its table, plain numbers for other tools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from setpoint._checks import plural
from setpoint.certificates.text import TextRows, share_text, value_text
from setpoint.monitoring.watched_rates import RateWatch
from setpoint.monitoring.watched_scores import AlertWatch, unlike, unranked

if TYPE_CHECKING:
    from setpoint.monitoring.monitor import Monitor

HOLDS, DRIFTING, BROKEN = "holds", "drifting", "broken"


def status_text(monitor: Monitor) -> str:
    """``holds``, ``drifting: alert share 1.31 x, e = 64`` or ``broken since 2024-05-03: ...``."""
    if monitor.verdict == BROKEN:
        first = next(watch for watch in monitor.rates if watch.name in monitor.alarms)
        return f"broken since {monitor.since(first.name)}: {rate_text(monitor, first)}"
    if monitor.verdict == DRIFTING:
        test = next(iter(monitor.alarms))
        log = max(monitor.alarms[test].log_evidence, monitor.tests[test].log_evidence)
        return f"drifting: {change_text(monitor, test)}, e = {_size(log)}"
    return HOLDS


def rate_text(monitor: Monitor, watch: RateWatch) -> str:
    """``fpr 1.8 % (1.5-2.2 %)`` since the change."""
    name = watch.quantity
    value, interval = monitor.rate_since(watch.name)
    if value is None:
        return name
    text = f"{name} {value_text(name, value)}"
    if interval is None:
        return text
    low, high = (value_text(name, end) for end in interval)
    return (
        f"{text} ({low} to {high})"
        if interval[0] < 0
        else f"{text} ({low.removesuffix(' %')}-{high})"
    )


def change_text(monitor: Monitor, test: str) -> str:
    """``alert share 1.31 x`` or ``scores above the threshold 1.4 x`` since the change."""
    watch, counts = monitor.tests[test], monitor.counts_since(test)
    if isinstance(watch, AlertWatch):
        alerts, rows = counts
        name = test.replace("alerts", "alert share", 1)
        return f"{name} {watch.ratio(alerts / rows):.2f} x"
    threshold = None
    if test == "scores":
        one = monitor.certificate.column is None
        threshold = monitor.certificate.threshold if one else 0.0
    part, factor = watch.moved(counts, threshold)
    return f"{part if test == 'scores' else f'{test}: {part}'} {factor:.2f} x"


def notes(monitor: Monitor) -> Iterator[str]:
    """Tests that are refused, labels without a row, rows without a label."""
    for name, why in monitor.refused.items():
        yield f"`{name}` is not tested: {why}."
    other = unlike(monitor.certificate)
    if other is not None and "alerts" in monitor.watch:
        yield f"The share of alerts is not tested: {other}."
    ranks = unranked(monitor.certificate)
    if ranks is not None and "scores" in monitor.watch:
        yield f"The ranks of scores are not tested: {ranks}."
    for alert in monitor.alerts:
        if alert.alerts in (0, alert.rows):
            how, side = ("No", "rise") if alert.alerts == 0 else ("Every", "fall")
            yield f"{how} calibration row counts in {alert.name}: the share can only {side}."
    if monitor.clusters.left_out:
        rows = plural(monitor.clusters.left_out, "row")
        yield f"{rows} of clusters that were counted before are left out: a cluster counts once."
    if monitor.clusters.mistaken > 0.01:
        lost = share_text(monitor.clusters.mistaken)
        yield f"{lost} of new clusters are taken for ones that were counted before."
    if monitor.scores is not None and monitor.scores.cells is None:
        waiting = len(monitor.scores.waiting)
        kept = f"first {plural(waiting, 'row')} are kept" if waiting else "first rows will be kept"
        yield f"The {kept} as the reference of scores."
    if monitor.pending.unknown:
        yield f"{plural(monitor.pending.unknown, 'label')} had no row that waited for one."
    if monitor.pending.dropped:
        yield f"{plural(monitor.pending.dropped, 'row')} waited too long for a label."
    if monitor.certificate.guarantee == "mean":
        yield "The certificate holds on average only: about every other one exceeds it."


def lines(monitor: Monitor) -> TextRows:
    """A name and a text for each test and note."""
    for watch in monitor.rates:
        if watch.value is None:
            yield watch.name, unlabelled_text(monitor)
            continue
        ends = monitor.interval(watch)
        shown = [value_text(watch.name, value) for value in (watch.value, *(ends or ()))]
        sure = f" ({shown[1]} to {shown[2]})" if ends else ""
        yield watch.name, f"{shown[0]}{sure}, {evidence_text(monitor, watch.name)}"
    for alert in monitor.alerts:
        alerts, rows = monitor.history.alerts(alert.name)
        now = share_text(alerts / rows) if rows else "none"
        text = f"{now} now, {share_text(alert.share)} at calibration"
        yield alert.name, f"{text}, {evidence_text(monitor, alert.name)}"
    for name in list(monitor.tests)[len(monitor.rates) + len(monitor.alerts) :]:
        yield name, evidence_text(monitor, name)
    for place, note in enumerate(monitor.notes):
        yield "" if place else "notes", note
    sure = share_text(monitor.false_alarm)
    yield "alarm", f"false in at most {sure} of all cases, however often one looks"


def unlabelled_text(monitor: Monitor) -> str:
    """Why a rate has no value: no labels have come, or none of them counts yet."""
    waiting = plural(monitor.selection.labels, "label")
    if not monitor.selection.labels:
        return "no labels yet"
    return f"{waiting} on hold until all of their block, or some of newer rows, have come"


def evidence_text(monitor: Monitor, test: str) -> str:
    """``evidence 64, alarm at 25``."""
    value, limit = monitor.tests[test].log_evidence, monitor.limits[test]
    return f"evidence {_size(value)}, alarm at {_size(limit)}"


def _size(log: float) -> str:
    return f"{math.exp(min(log, 700.0)):.3g}"


def metrics(monitor: Monitor) -> dict[str, float]:
    """See :meth:`Monitor.metrics`."""
    found = {"status": float((HOLDS, DRIFTING, BROKEN).index(monitor.verdict))}
    found["rows"], keys = float(monitor.rows), _keys(monitor)
    for watch in monitor.rates:
        name = keys[watch.name]
        if watch.value is not None:
            found[name] = watch.value
            ends = monitor.interval(watch)
            found |= {} if ends is None else {f"{name}_low": ends[0], f"{name}_high": ends[1]}
    for alert in monitor.alerts if monitor.history.periods else ():
        alerts, rows = monitor.history.periods[-1].alerts.get(alert.name, (0.0, 0.0))
        found |= {f"{keys[alert.name]}_share": alerts / rows} if rows else {}
        found[f"{keys[alert.name]}_share_expected"] = alert.share
    for name, limit in monitor.limits.items():
        found[f"evidence_{keys[name]}"] = monitor.tests[name].log_evidence / math.log(10)
        found[f"alarm_at_{keys[name]}"] = limit / math.log(10)
    return {name: float(value) for name, value in found.items()}


def _keys(monitor: Monitor) -> dict[str, str]:
    """By test a name that Prometheus takes; where two would be alike, they are numbered."""
    found: dict[str, str] = {}
    for test, watch in monitor.tests.items():
        name = watch.quantity if isinstance(watch, RateWatch) else test
        plain = re.sub(r"[^a-zA-Z0-9]+", "_", name).strip("_")
        taken = sum(key.lower().split("__")[0] == plain.lower() for key in found.values())
        found[test] = f"{plain}__{taken + 1}" if taken else plain
    return found


def table(monitor: Monitor) -> list[dict[str, Any]]:
    """See :meth:`Monitor.table`."""
    found = []
    for place, period in enumerate(monitor.history.every):
        present = place >= len(monitor.history.earlier)
        row: dict[str, Any] = {"period": period.name, "rows": period.rows, "present": present}
        for alert in monitor.alerts:
            alerts, rows = period.alerts.get(alert.name, (0.0, 0.0))
            row[alert.name] = alerts
            row[f"{alert.name} share"] = alerts / rows if rows else None
        for watch in monitor.rates:
            counts = period.rates.get(watch.name)
            row[watch.name] = None if counts is None else watch.rate(counts)
            low, high = period.intervals.get(watch.name, (None, None))
            row[f"{watch.name} low"], row[f"{watch.name} high"] = low, high
        for name in monitor.tests:
            row[f"log evidence of {name}"] = period.evidence.get(name)
        found.append(row)
    return found
