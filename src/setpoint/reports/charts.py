"""The plots of the report: each takes the findings of a run and returns a drawing.

To add a plot, compute its numbers in a property of :class:`setpoint.results.Findings` and draw them
here, in a function that is added to a section of :data:`PLOTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from setpoint.rates import Bound, is_cost
from setpoint.reports.svg import (
    BOTTOM,
    RIGHT,
    WIDTH,
    Plot,
    Scale,
    counted,
    linear,
    logarithmic,
    up_to_one,
)
from setpoint.reports.text import (
    RATE_NAMES,
    asked_level,
    between,
    capital,
    clip,
    date,
    level,
    name,
    number,
    percent,
    rate_name,
    thousands,
)
from setpoint.results import Curves, Findings, Histogram, Measured, TrainingSeries, corner, thin

STYLES = ("ours", "other")
MOST_SERIES = 6


def bounds_by_split(found: Findings) -> Iterator[Plot]:
    """The first two bounds on every split, or the bound and the objective."""
    for place, bound in enumerate(found.goal.bounds[:2]):
        rows = [(row.name, row.bounds[place]) for row in found.splits]
        line = bound if isinstance(bound, Bound) else None
        title = rate_name(bound.expression)
        cost = is_cost(bound.expression)
        yield _intervals(rows, title, _with_bound(title, line), line, cost=cost)
    if len(found.goal.bounds) < 2:
        objective = found.goal.objective
        label = "recall" if objective is None else rate_name(objective)
        rows = [(row.name, row.wanted) for row in found.splits]
        cost = objective is not None and is_cost(objective)
        yield _intervals(rows, label, capital(label), cost=cost)


def bounded_rate(found: Findings) -> tuple[str, Bound | None]:
    """Which of the usual rates to draw by group and by period, and the bound on it."""
    known = {"fpr": "fpr", "recall": "recall", "tpr": "recall", "precision": "precision"}
    for bound in found.goal.bounds:
        rate = known.get(str(bound.expression), "")
        if rate and isinstance(bound, Bound):
            return rate, bound
    return "fpr", None


def groups(found: Findings) -> Iterator[Plot]:
    """The bounded rate and the share of alerts in every group."""
    rate, bound = bounded_rate(found)
    for attribute, line in ((rate, bound), ("coverage", None)):
        rows = [(row.name, getattr(row, attribute)) for row in found.groups]
        title = RATE_NAMES[attribute]
        yield _intervals(rows, title, _with_bound(title, line), line, left=132)


def _with_bound(title: str, bound: Bound | None) -> str:
    """``False positive rate (dashed: ≤ 1 %)``."""
    return capital(title) + ("" if bound is None else f" (dashed: {asked_level(bound)})")


def _intervals(
    rows: list[tuple[str, Measured]],
    title: str,
    heading: str,
    bound: Bound | None = None,
    left: int = 92,
    cost: bool = False,
) -> Plot:
    """One interval per row, and the bound they should keep to; a cost is no share."""
    x = linear(*_room([rate for _, rate in rows], bound), shares=not cost, about=4)
    places = [len(rows) - i - 0.5 for i in range(len(rows))]
    longest = left // 8
    y = Scale(0, len(rows), [(p, clip(n, longest)) for p, (n, _) in zip(places, rows, strict=True)])
    spoken = "; ".join(f"{n}: {_in_words(m, cost)}" for n, m in rows)
    plot = Plot(x, y, title, spoken, heading, height=76 + 34 * len(rows), left=left)
    plot.frame(title)
    if bound is not None:
        plot.upright(bound.level)
    for (_, rate), place in zip(rows, places, strict=True):
        if rate.value == rate.value:
            low, high = rate.interval or (rate.value, rate.value)
            plot.whisker((low, place), (high, place))
            plot.dot(rate.value, place)
    return plot


def _in_words(rate: Measured, cost: bool) -> str:
    """A rate and its interval, in per cent unless it is a cost."""
    write = number if cost else percent
    if rate.interval is None:
        return write(rate.value)
    return f"{write(rate.value)} ({' to '.join(map(write, rate.interval))})"


def _room(rates: list[Measured], bound: Bound | None) -> tuple[float, float]:
    """The ends of an axis that shows all intervals and the bound."""
    ends = [end for m in rates for end in (m.interval or (m.value, m.value)) if end == end]
    ends += [] if bound is None else [bound.level]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = 0.08 * ((high - low) or 0.01)
    return max(0.0, low - room), high + room


def periods(found: Findings) -> Iterator[Plot]:
    """The bounded rate and the share of alerts in every period."""
    rate, bound = bounded_rate(found)
    for attribute, line in ((rate, bound), ("coverage", None)):
        rows = [(row.name, getattr(row, attribute)) for row in found.periods]
        yield over_time(rows, RATE_NAMES[attribute], line)


def over_time(rows: list[tuple[str, Measured]], title: str, bound: Bound | None) -> Plot:
    """A rate with its interval at each of several times, in their order."""
    last = len(rows) - 1
    shown = sorted({round(0.12 * last), round(0.5 * last), round(0.88 * last)})
    x = Scale(-0.5, last + 0.5, [(i, rows[i][0]) for i in shown])
    y = linear(*_room([rate for _, rate in rows], bound), shares=True, about=4)
    spoken = "; ".join(f"{n}: {percent(m.value)} ({between(m.interval)})" for n, m in rows)
    plot = Plot(x, y, title, spoken, _with_bound(title, bound), height=230)
    plot.frame("")
    if bound is not None:
        plot.level(bound.level)
    for place, (_, rate) in enumerate(rows):
        if rate.value == rate.value:
            low, high = rate.interval or (rate.value, rate.value)
            plot.whisker((place, low), (place, high))
            plot.dot(place, rate.value, 4 if len(rows) < 30 else 3)
    return plot


def roc_curve(found: Findings) -> Iterator[Plot]:
    """The corner of the ROC curve around the operating point."""
    if not found.curves:
        return
    x = _fpr_scale(found)
    shown = [corner(c.roc, x.low, x.high, log=x.log) for c in found.curves]
    recall = found.judged.recall
    lowest = min(
        [*(float(c.tpr[0]) for c in shown), recall.interval.low if recall.interval else 1.0]
    )
    spoken = f"{_spoken_point(found)} Curves: {', '.join(c.name for c in found.curves)}."
    y = up_to_one(min(0.9, max(0.0, int(10 * lowest - 0.5) / 10)))
    plot = Plot(x, y, "ROC curve at the operating point", spoken, "ROC curve, zoomed")
    plot.frame("false positive rate" + (", logarithmic" if x.log else ""), "recall")
    if found.bound is not None and str(found.bound.expression) == "fpr":
        plot.upright(found.bound.level, f"bound {level(found.bound.level)}")
    for curve, style in reversed(list(zip(shown, STYLES, strict=False))):
        plot.curve(curve.fpr.tolist(), curve.tpr.tolist(), style, steps=True)
    if found.run.threshold is not None:
        _operating_point(plot, found.judged.fpr, found.judged.recall)
    _legend(plot, found.curves, right=True)
    yield plot


def precision_recall_curve(found: Findings) -> Iterator[Plot]:
    """Precision over recall, whole."""
    if not found.curves:
        return
    title, heading = "Precision-recall curve", "Precision and recall"
    plot = Plot(up_to_one(), up_to_one(), title, _spoken_point(found), heading)
    plot.frame("recall", "precision")
    if found.bound is not None and str(found.bound.expression) in ("recall", "tpr"):
        plot.upright(found.bound.level, f"bound {level(found.bound.level)}")
    for both, style in reversed(list(zip(found.curves, STYLES, strict=False))):
        kept = thin(both.pr.recall, both.pr.precision)
        plot.curve(both.pr.recall[kept].tolist(), both.pr.precision[kept].tolist(), style)
    if found.run.threshold is not None:
        _operating_point(plot, found.judged.recall, found.judged.precision)
    _legend(plot, found.curves, right=False)
    yield plot


def threshold_plot(found: Findings) -> Plot:
    """How the scores of both classes are spread, in logarithmic counts, and the threshold."""
    assert found.histogram is not None
    scale = "score" if found.one_threshold else "score minus the threshold of the group"
    plot = histogram_plot(found.histogram, scale)
    if found.shown is not None:
        plot.upright(found.shown.threshold, "threshold", top=True, class_="threshold")
    return plot


def histogram_plot(h: Histogram, scale: str = "score") -> Plot:
    """The counts of both classes in bins of ``scale``, on a logarithmic axis."""
    x = linear(float(h.edges[0]), float(h.edges[-1]), about=4)
    y = counted(float(max(h.positives.max(), h.negatives.max())))
    positives, negatives = thousands(h.positives.sum()), thousands(h.negatives.sum())
    spoken = f"{positives} positives and {negatives} negatives."
    plot = Plot(x, y, "Scores of both classes", spoken, height=290)
    plot.frame(scale, "cases, logarithmic")
    for counts, style in ((h.negatives, "bar-negative"), (h.positives, "bar-positive")):
        for low, high, count in zip(h.edges[:-1], h.edges[1:], counts, strict=True):
            if count:
                plot.box((float(low), y.low), (float(high), float(count)), style)
    return plot


def scores(found: Findings) -> Iterator[Plot]:
    """The scores, if there is one for each case."""
    if found.histogram is not None:
        yield threshold_plot(found)


def group_scores(found: Findings) -> Iterator[Plot]:
    """The scores of each group whose threshold can be moved by itself."""
    for group, own in found.by_group.items():
        if own.shown is not None:
            plot = threshold_plot(own)
            plot.title += f", {clip(group, 60)}"
            yield plot


def checks(found: Findings) -> Iterator[Plot]:
    """Each bounded rate as later checks measured it."""
    for bound in found.goal.bounds[:2]:
        rows = [
            (date(check["when"]), Measured(each["measured"]))
            for check in found.checks
            for each in check["findings"]
            if each["name"] == str(bound) and each["measured"] is not None
        ]
        if len(rows) > 1 and isinstance(bound, Bound):
            yield over_time(rows, rate_name(bound.expression), bound)


def training(found: Findings) -> Iterator[Plot]:
    """The numbers that were noted in training, one plot each."""
    return map(_training_curve, found.history[:MOST_SERIES])


def _training_curve(series: TrainingSeries) -> Plot:
    low, high = min(series.y), max(series.y)
    room = 0.06 * ((high - low) or abs(high) or 1.0)
    last = max(series.x) if max(series.x) > min(series.x) else min(series.x) + 1
    x, y = linear(min(series.x), last, about=4), linear(low - room, high + room, about=4)
    spoken = f"From {series.y[0]:.4g} to {series.y[-1]:.4g}; lowest {low:.4g}, highest {high:.4g}."
    plot = Plot(x, y, clip(series.name, 60), spoken, name(series.name, 40), height=230)
    plot.frame(series.over)
    plot.curve(series.x, series.y, "ours")
    return plot


PLOTS: dict[str, tuple[Callable[[Findings], Iterable[Plot]], ...]] = {
    "bounds": (bounds_by_split,),
    "groups": (groups,),
    "periods": (periods,),
    "curves": (roc_curve, precision_recall_curve),
    "scores": (scores,),
    "group scores": (group_scores,),
    "checks": (checks,),
    "training": (training,),
}
"""What draws each section of the page, in its order: each function yields its plots, or none."""


def _fpr_scale(found: Findings) -> Scale:
    """Around the bound on FPR, or else around the point; logarithmic where rates are small."""
    bound, rate = found.bound, found.judged.fpr
    focus = rate.value if rate.count else 0.0
    if bound is not None and str(bound.expression) == "fpr":
        focus = bound.level
    if not 0 < focus < 0.5:
        return up_to_one()
    if focus > 0.02:
        return linear(0.0, min(1.0, 3 * focus), shares=True)
    return logarithmic(max(focus / 20, 1e-7), focus * 10)


def _operating_point(plot: Plot, x: Measured, y: Measured) -> None:
    """The point, and the box that both intervals make."""
    if x.interval is None or y.interval is None:
        return
    plot.box((x.interval.low, y.interval.low), (x.interval.high, y.interval.high), "box")
    plot.dot(x.value, y.value)


def _legend(plot: Plot, shown: tuple[Curves, ...], *, right: bool) -> None:
    """Names in the corner that the curve never enters, ours at the top."""
    x, anchor = (WIDTH - RIGHT - 6, "end") if right else (plot.left + 10, "start")
    bottom = plot.height - BOTTOM - 12
    for place, (curve, style) in enumerate(reversed(list(zip(shown, STYLES, strict=False)))):
        plot.text(x, bottom - 17 * place, clip(curve.name, 36), anchor, f"t-{style}")


def _spoken_point(found: Findings) -> str:
    row = found.judged
    rates = (("false positive rate", row.fpr), ("recall", row.recall), ("precision", row.precision))
    spoken = (f"{label} {percent(r.value)} ({between(r.interval)})" for label, r in rates)
    return f"Operating point on {row.name}: {', '.join(spoken)}."
