"""The page of a monitor: what it says, the rates over time, the evidence, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from markupsafe import Markup

from setpoint.certificates.goals import as_capacity, goal_to_certify
from setpoint.monitoring import Monitor
from setpoint.monitoring.status import change_text, rate_text, unlabelled_text
from setpoint.monitoring.watched_rates import CapacityWatch, RateWatch, ShareWatch
from setpoint.reports.run_page import environment
from setpoint.reports.svg import Plot, Scale, linear
from setpoint.reports.text import NOTHING, capital, level, percent, pretty, rate_name, thousands
from setpoint.reports.wording import nouns_from, promise_in_words

MARK = b'id="setpoint-watch"'
"""What tells a page of a monitor from any other file."""
_STYLES = ("ours", "other", "third", "fourth")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TITLES = {"holds": "✓ Holds", "drifting": "Drifting", "broken": "✗ Broken"}
_TONES = {"holds": "certified", "drifting": "not-certified", "broken": "infeasible"}


def watch_page(monitor: Monitor) -> str:
    """The state of a monitor as one HTML document; write it as UTF-8.

    Examples:
        >>> from setpoint import certify
        >>> labels = np.arange(3000) % 3 == 0
        >>> scores = np.random.default_rng(0).normal(size=3000) + 3 * labels
        >>> monitor = certify(scores, labels, "fpr <= 0.05").monitor()
        >>> _ = monitor.update(scores, labels)
        >>> "fpr" in watch_page(monitor)
        True
    """
    numbers = count(1)
    plots = [(next(numbers), plot) for plot in _plots(monitor)]
    template = environment().get_template("watch.html.jinja")
    return (
        template.render(
            monitor=monitor,
            title=_TITLES[monitor.verdict],
            promise=_promise_of(monitor),
            tone=_TONES[monitor.verdict],
            changes=list(changes(monitor)),
            advice=list(advice(monitor)),
            figures=list(_figures(monitor)),
            plots=plots,
            tests=list(_tests(monitor)),
            numbers={"metrics": monitor.metrics(), "periods": monitor.table()},
        )
        + "\n"
    )


def _promise_of(monitor: Monitor) -> Markup:
    """What was certified, in the words of the labels."""
    certificate = monitor.certificate
    if as_capacity(certificate.goal) is not None:
        return Markup("<bdi>{}</bdi>").format(capital(pretty(certificate.goal)))
    nouns = nouns_from((certificate.label_names or ("0", "1"))[1], "", "")
    bounds = goal_to_certify(certificate.goal).bounds
    words = promise_in_words(bounds, nouns, certificate.column)
    return words if words.startswith("<") else Markup(capital(words))


def changes(monitor: Monitor) -> Iterator[str]:
    """What has changed, one sentence for each alarm."""
    for test in (test for test in monitor.tests if test in monitor.alarms):  # rates first
        watch = monitor.tests[test]
        when = f"since {monitor.since(test)}"
        if hasattr(watch, "inequality"):
            yield f"{rate_text(monitor, watch)} {when}, where {pretty(test)} was certified"
        else:
            yield f"{change_text(monitor, test)} {when}"


def advice(monitor: Monitor) -> Iterator[str]:
    """What to do about it."""
    if monitor.verdict == "broken":
        first = next(watch.name for watch in monitor.rates if watch.name in monitor.alarms)
        yield f"Do not rely on the threshold for rows since {monitor.since(first)}."
        yield (
            "Label rows that came after the alarm and recalibrate: "
            "monitor.recalibrate(scores, labels), or setpoint watch --recalibrate."
        )
        yield "If the features moved (watch them by --features), train again on recent rows."
    elif monitor.verdict == "drifting":
        yield "The scores are not what they were; whether the bound holds, labels alone can tell."
        if monitor.rates and all(watch.value is not None for watch in monitor.rates):
            yield "The labels so far do not refute it: go on giving it new ones."
        else:
            yield (
                "Label some recent rows, drawn at random, and update with them: "
                f"{_labels_to_draw(monitor)}."
            )
        yield "Look for a cause: a new source of rows, a changed column, a season."
    else:
        yield "Nothing. Go on giving it new rows, with labels as they become known."
    yield from monitor.notes


def _labels_to_draw(monitor: Monitor) -> str:
    """How many rows could refute the first bound if its events were twice as frequent."""
    for watch in monitor.rates:
        if isinstance(watch, ShareWatch):
            risk = watch.excess.limit
            other = 2 * risk / (1 + risk)
            gain = other * math.log(other / risk) + (1 - other) * math.log((1 - other) / (1 - risk))
            rows = monitor.limits[watch.name] / gain
            return (
                f"about {thousands(float(f'{1.3 * rows:.1g}'))} that {pretty(watch.name)} is about"
            )
    return "a few hundred"


def _figures(monitor: Monitor) -> Iterator[tuple[str, str, list[str]]]:
    """Numbers worth a large type: a label, a value, small lines."""
    for watch in monitor.rates[:3]:
        if watch.value is None:
            yield _quantity(watch), NOTHING, [unlabelled_text(monitor)]
            continue
        ends = monitor.interval(watch)
        lines = [] if ends is None else [f"{percent(ends[0])} to {percent(ends[1])} at all times"]
        lines.append(f"certified: {pretty(watch.name)}")
        yield _quantity(watch), percent(watch.value), lines
    for alert in monitor.alerts[:1]:
        alerts, rows = monitor.history.alerts(alert.name)
        value = percent(alerts / rows) if rows else NOTHING
        yield "Alerts", value, [f"{percent(alert.share)} at calibration"]
    yield "Rows", thousands(monitor.rows), [f"in {thousands(len(monitor.history.every))} periods"]


def _quantity(watch: RateWatch) -> str:
    if isinstance(watch, CapacityWatch):
        return watch.quantity
    return rate_name(watch.inequality.bound.expression)


def _tests(monitor: Monitor) -> Iterator[tuple[str, str, str, str, bool]]:
    """A row for each test: its name, evidence, limit, part of false alarms, whether it alarms."""
    for test, watch in monitor.tests.items():
        value, limit = (f"{math.exp(min(x, 700.0)):.3g}" for x in _logs(monitor, test))
        share = percent(monitor.budget[test])
        yield pretty(watch.name), value, limit, share, test in monitor.alarms


def _logs(monitor: Monitor, test: str) -> tuple[float, float]:
    return monitor.tests[test].log_evidence, monitor.limits[test]


def _plots(monitor: Monitor) -> Iterator[Plot]:
    if not monitor.history.periods:
        return
    yield from _rates(monitor)
    yield _evidence(monitor)
    for alert in monitor.alerts[:2]:
        yield _alerts(monitor, alert.name, alert.share)
    if monitor.scores is not None and len(monitor.scores.reference):
        yield _histogram(monitor)


def _periods(monitor: Monitor) -> Scale:
    """Periods from left to right, up to three of them named."""
    names = [period.name.split(" to ")[0] for period in monitor.history.every]
    shown = np.unique(np.floor(np.array([1, 3, 5]) / 6 * len(names)).astype(int))
    return Scale(0, len(names), [(i + 0.5, names[i][:13]) for i in shown.tolist()])


def _rates(monitor: Monitor) -> Iterator[Plot]:
    """Each certified rate: by period, and the confidence sequence of all rows so far."""
    table = monitor.table()
    for watch in monitor.rates[:4]:
        found = [(i, row) for i, row in enumerate(table) if row[f"{watch.name} low"] is not None]
        if not found:
            continue
        bound = watch.inequality.bound
        values = [row[watch.name] for _, row in found if row[watch.name] is not None]
        lows, highs = ([row[f"{watch.name} {end}"] for _, row in found] for end in ("low", "high"))
        late = len(found) // 8  # the first intervals are as wide as the page
        ends = [bound.level, *lows[late:], *highs[late:], *_middle(values)]
        room = 0.08 * (max(ends) - min(ends)) or 0.01
        y = linear(max(min(ends) - room, 0.0), max(ends) + room, shares=True, about=4)
        label, sense = capital(_quantity(watch)), pretty(bound.sense)
        spoken = f"{label}: {percent(lows[-1])} to {percent(highs[-1])} at the end."
        plot = Plot(
            _periods(monitor),
            y,
            label,
            spoken,
            f"{label}, certified {sense} {level(bound.level)} (dashed)",
            height=270,
        )
        plot.frame("")
        for (i, _), low, high in zip(found, lows, highs, strict=True):
            plot.box((i, low), (i + 1, high), "box")
        points = [(i + 0.5, row[watch.name]) for i, row in found if row[watch.name] is not None]
        for x, value in points:
            plot.dot(x, value, radius=2.5)
        _level(plot, bound.level)
        if monitor.history.earlier:
            plot.upright(len(monitor.history.earlier), "recalibrated", top=True)
        yield plot


def _middle(values: Sequence[float]) -> list[float]:
    """The values but for the most extreme ones, which are drawn at the edge."""
    return np.quantile(values, [0.02, 0.98]).tolist() if values else []


def _evidence(monitor: Monitor) -> Plot:
    """The evidence of every test in units of its own limit, on a logarithmic scale."""
    lines = {}
    for test in list(monitor.tests)[: len(_STYLES)]:
        limit = monitor.limits[test]
        logs = [period.evidence.get(test, 0.0) for period in monitor.history.every]
        lines[test] = [(log - limit) / math.log(10) for log in logs]
    every = [value for line in lines.values() for value in line]
    low, high = max(min([*every, -3.0]), -6.0), min(max([*every, 1.0]), 6.0)
    step = 1 if high - low <= 6 else 2
    whole = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    names = [(e, "alarm" if e == 0 else f"10{str(e).translate(_RAISED)}") for e in whole]
    y = Scale(low, high + 0.1 * (high - low) * len(lines), names)  # the legend lies above the lines
    spoken = "; ".join(
        f"{test}: {10 ** min(line[-1], 300.0):.3g} of its alarm" for test, line in lines.items()
    )
    title = "Evidence, in units of its alarm"
    plot = Plot(_periods(monitor), y, title, spoken, title, height=270)
    plot.frame("")
    _level(plot, 0.0)
    for place, (style, (test, line)) in enumerate(zip(_STYLES, lines.items(), strict=False)):
        xs = [i + 0.5 for i in range(len(line))]
        ys = [min(max(value, low), high) for value in line]
        plot.curve(xs, ys, style)
        plot.text(plot.left + 10, 26 + 16 * place, pretty(test), "start", f"t-{style}")
    return plot


def _alerts(monitor: Monitor, test: str, share: float) -> Plot:
    """The share of alerts by period."""
    shares = [
        (i, counts[0] / counts[1])
        for i, period in enumerate(monitor.history.every)
        if (counts := period.alerts.get(test)) and counts[1]
    ]
    top = max([share, *(value for _, value in shares)]) * 1.1 or 1.0
    spoken = f"{percent(share)} at calibration, {percent(shares[-1][1])} now." if shares else ""
    y = linear(0.0, top, shares=True, about=4)
    heading = f"Share of {test}"
    above = f"{heading}, {percent(share)} at calibration (dashed)"
    plot = Plot(_periods(monitor), y, heading, spoken, above, height=230)
    plot.frame("")
    for i, value in shares:
        plot.box((i + 0.1, 0.0), (i + 0.9, value), "bar-negative")
    _level(plot, share)
    return plot


def _histogram(monitor: Monitor) -> Plot:
    """Scores of the reference sample and of the latest periods."""
    assert monitor.scores is not None
    edges, then = monitor.scores.edges, monitor.scores.reference
    recent = [np.array(p.histogram) for p in monitor.history.periods if p.histogram]
    now = sum(recent, np.zeros_like(then))
    shares = then / max(then.sum(), 1.0), now / max(now.sum(), 1.0)
    x = linear(float(edges[0]), float(edges[-1]))
    y = linear(0.0, float(max(shares[0].max(), shares[1].max())) * 1.08, shares=True, about=4)
    spoken = f"{thousands(then.sum())} scores then, {thousands(now.sum())} now."
    title = "Scores then (grey) and now (line)"
    plot = Plot(x, y, title, spoken, title, height=230)
    one = monitor.certificate.column is None
    plot.frame("score" if one else "score minus the threshold of its group")
    for low, high, value in zip(edges[:-1], edges[1:], shares[0], strict=True):
        plot.box((float(low), 0.0), (float(high), float(value)), "bar-negative")
    if now.sum():
        xs, ys = [edges[0], *edges.tolist()], [0.0, *shares[1].tolist(), 0.0]
        plot.curve(xs, ys, "ours", steps=True)  # from an edge on, the share of the bar it begins
    threshold = monitor.certificate.threshold if one else 0.0
    if edges[0] < threshold < edges[-1]:
        plot.upright(threshold, "threshold", top=True)
    return plot


def _level(plot: Plot, value: float) -> None:
    """A horizontal line from edge to edge."""
    plot.curve([plot.x.low, plot.x.high], [value, value], "bound")
