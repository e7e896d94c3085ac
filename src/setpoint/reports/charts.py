"""The plots of the report: each takes the findings of a run and returns a drawing.

To add a plot, compute its numbers in a property of :class:`setpoint.results.Findings` and draw them
here, in a function that :data:`PLOTS` lists under the section of the page where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from markupsafe import Markup

from setpoint.rates import Bound
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
    between,
    clip,
    cut,
    level,
    name,
    percent,
    pretty,
    rate_name,
    thousands,
)
from setpoint.results import Curves, Findings, Measured, TrainingSeries, corner, thin

STYLES = ("ours", "other")
MOST_SERIES = 6


def bounds_by_split(found: Findings) -> Iterator[Plot]:
    """The first two bounds on every split, or the bound and the objective."""
    for place, bound in enumerate(found.goal.bounds[:2]):
        rows = [(row.name, row.bounds[place]) for row in found.splits]
        line = bound if isinstance(bound, Bound) else None
        heading = f"Bound: {pretty(bound)}"
        yield _by_split(rows, rate_name(bound.expression), heading, line)
    if len(found.goal.bounds) < 2:
        objective = found.goal.objective
        label = "recall" if objective is None else rate_name(objective)
        rows = [(row.name, row.wanted) for row in found.splits]
        yield _by_split(rows, label, label if objective is None else f"Objective: {label}", None)


def _by_split(
    rows: list[tuple[str, Measured]], title: str, heading: str, bound: Bound | None
) -> Plot:
    """One interval per split, and the bound they should keep to."""
    ends = [end for _, m in rows for end in (m.interval or (m.value, m.value)) if end == end]
    ends += [] if bound is None else [bound.level]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = 0.08 * ((high - low) or 0.01)
    x = linear(max(0.0, low - room), high + room, shares=True, about=4)
    y = Scale(0, len(rows), [(len(rows) - i - 0.5, split) for i, (split, _) in enumerate(rows)])
    spoken = "; ".join(f"{n}: {percent(m.value)} ({between(m.interval)})" for n, m in rows)
    plot = Plot(x, y, title, spoken, heading, height=76 + 34 * len(rows), left=92)
    plot.frame(title)
    if bound is not None:
        plot.upright(bound.level)
    for (_, rate), (place, _) in zip(rows, y.ticks, strict=True):
        if rate.value == rate.value:
            low, high = rate.interval or (rate.value, rate.value)
            plot.whisker(low, high, place)
            plot.dot(rate.value, place)
    return plot


def curves(found: Findings) -> Iterator[Plot]:
    """ROC and precision-recall curve with the operating point."""
    if found.curves:
        yield _roc(found)
        yield _precision_recall(found)


def _roc(found: Findings) -> Plot:
    """The corner of the ROC curve around the operating point."""
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
    _operating_point(plot, found.judged.fpr, found.judged.recall)
    _legend(plot, found.curves, right=True)
    return plot


def _precision_recall(found: Findings) -> Plot:
    """Precision over recall, whole."""
    title, heading = "Precision-recall curve", "Precision and recall"
    plot = Plot(up_to_one(), up_to_one(), title, _spoken_point(found), heading)
    plot.frame("recall", "precision")
    if found.bound is not None and str(found.bound.expression) in ("recall", "tpr"):
        plot.upright(found.bound.level, f"bound {level(found.bound.level)}")
    for both, style in reversed(list(zip(found.curves, STYLES, strict=False))):
        kept = thin(both.pr.recall, both.pr.precision)
        plot.curve(both.pr.recall[kept].tolist(), both.pr.precision[kept].tolist(), style)
    _operating_point(plot, found.judged.recall, found.judged.precision)
    _legend(plot, found.curves, right=False)
    return plot


def scores(found: Findings) -> Iterator[Plot]:
    """How the scores of both classes are spread, in logarithmic counts."""
    h = found.histogram
    if h is None:
        return
    row, positive = found.judged, found.run.positive
    heading = Markup("“{}”: {} cases").format(name(positive, 40), thousands(row.positives))
    both = (
        (h.positives, f"“{positive}”", heading, "bar-positive"),
        (h.negatives, "the others", f"Negatives: {thousands(row.negatives)} cases", "bar-negative"),
    )
    for counts, class_name, above, style in both:
        x = linear(float(h.edges[0]), float(h.edges[-1]))
        y = counted(float(max(h.positives.max(), h.negatives.max())))
        spoken = f"{thousands(counts.sum())} scores from {cut(x.low)} to {cut(x.high)}."
        plot = Plot(x, y, f"Scores of {clip(class_name, 60)}", spoken, above, height=230)
        plot.frame("score" if found.one_threshold else "score minus the threshold of the group")
        for low, high, count in zip(h.edges[:-1], h.edges[1:], counts, strict=True):
            if count:
                plot.box((float(low), y.low), (float(high), float(count)), style)
        if found.cut is not None:
            plot.upright(found.cut, "threshold", top=True)
        yield plot


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


PLOTS: dict[str, Callable[[Findings], Iterable[Plot]]] = {
    "bounds": bounds_by_split,
    "curves": curves,
    "scores": scores,
    "training": training,
}
"""The plots of each section of the page, in the order in which they are drawn."""


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
