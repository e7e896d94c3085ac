"""The pictures of a report, each drawn from finished numbers."""

from __future__ import annotations

from setpoint.rates import Bound
from setpoint.reports.html import clip
from setpoint.reports.numbers import between, level, percent, threshold, whole
from setpoint.reports.plot import BOTTOM, RIGHT, WIDTH, Plot, Scale
from setpoint.reports.scales import counted, linear, logarithmic, unit
from setpoint.results.curves import TrainingSeries, corner, thin
from setpoint.results.findings import Curves, Findings
from setpoint.results.measured import Measured

STYLES = ("ours", "other")


def by_split(rows: list[tuple[str, Measured]], title: str, bound: Bound | None) -> Plot:
    """One interval a split, and the bound they should keep to."""
    ends = [end for _, m in rows for end in (m.interval or (m.value, m.value)) if end == end]
    ends += [] if bound is None else [bound.level]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = 0.08 * ((high - low) or 0.01)
    x = linear(max(0.0, low - room), high + room, shares=True, about=4)
    y = Scale(0, len(rows), [(len(rows) - i - 0.5, name) for i, (name, _) in enumerate(rows)])
    spoken = "; ".join(f"{n}: {percent(m.value)} ({between(m.interval)})" for n, m in rows)
    plot = Plot(x, y, title, spoken, height=76 + 34 * len(rows), left=92)
    plot.frame(title)
    if bound is not None:
        plot.upright(bound.level)
    for (_, rate), (place, _) in zip(rows, y.ticks, strict=True):
        if rate.value == rate.value:
            low, high = rate.interval or (rate.value, rate.value)
            plot.whisker(low, high, place)
            plot.dot(rate.value, place)
    return plot


def roc(found: Findings) -> Plot:
    """The corner of the ROC curve around the operating point."""
    x = _fpr_scale(found)
    shown = [corner(c.roc, x.low, x.high, log=x.log) for c in found.curves]
    lowest = min([*(float(c.tpr[0]) for c in shown), _low(found.judged.recall)])
    spoken = f"{_point(found)} Curves: {', '.join(c.name for c in found.curves)}."
    y = unit(min(0.9, max(0.0, int(10 * lowest - 0.5) / 10)))
    plot = Plot(x, y, "ROC curve at the operating point", spoken)
    plot.frame("false positive rate" + (", logarithmic" if x.log else ""), "recall")
    if found.bound is not None and str(found.bound.expression) == "fpr":
        plot.upright(found.bound.level, f"bound {level(found.bound.level)}")
    for curve, style in reversed(list(zip(shown, STYLES, strict=False))):
        plot.curve(curve.fpr.tolist(), curve.tpr.tolist(), style, steps=True)
    _operating_point(plot, found.judged.fpr, found.judged.recall)
    _legend(plot, found.curves, right=True)
    return plot


def precision_recall(found: Findings) -> Plot:
    """Precision over recall, whole."""
    plot = Plot(unit(), unit(), "Precision-recall curve", _point(found))
    plot.frame("recall", "precision")
    if found.bound is not None and str(found.bound.expression) in ("recall", "tpr"):
        plot.upright(found.bound.level, f"bound {level(found.bound.level)}")
    for curves, style in reversed(list(zip(found.curves, STYLES, strict=False))):
        kept = thin(curves.pr.recall, curves.pr.precision)
        plot.curve(curves.pr.recall[kept].tolist(), curves.pr.precision[kept].tolist(), style)
    _operating_point(plot, found.judged.recall, found.judged.precision)
    _legend(plot, found.curves, right=False)
    return plot


def scores(found: Findings, positive: bool, class_name: str) -> Plot:
    """How the scores of one class are spread, in logarithmic counts."""
    h = found.histogram
    counts = h.positives if positive else h.negatives
    x = linear(float(h.edges[0]), float(h.edges[-1]))
    y = counted(float(max(h.positives.max(), h.negatives.max())))
    spoken = f"{whole(counts.sum())} scores from {threshold(x.low)} to {threshold(x.high)}."
    plot = Plot(x, y, f"Scores of {clip(class_name, 60)}", spoken, height=230)
    plot.frame("score" if found.one_threshold else "score minus the threshold of the group")
    style = "bar-positive" if positive else "bar-negative"
    for low, high, count in zip(h.edges[:-1], h.edges[1:], counts, strict=True):
        if count:
            plot.box((float(low), y.low), (float(high), float(count)), style)
    if found.cut is not None:
        plot.upright(found.cut, "threshold", top=True)
    return plot


def history(series: TrainingSeries) -> Plot:
    """One training curve."""
    low, high = min(series.y), max(series.y)
    room = 0.06 * ((high - low) or abs(high) or 1.0)
    last = max(series.x) if max(series.x) > min(series.x) else min(series.x) + 1
    x, y = linear(min(series.x), last, about=4), linear(low - room, high + room, about=4)
    spoken = f"From {series.y[0]:.4g} to {series.y[-1]:.4g}; lowest {low:.4g}, highest {high:.4g}."
    plot = Plot(x, y, clip(series.name, 60), spoken, height=230)
    plot.frame(series.over)
    plot.curve(series.x, series.y, "ours")
    return plot


def _fpr_scale(found: Findings) -> Scale:
    """Around the bound on FPR, or else around the point; logarithmic where rates are small."""
    bound, rate = found.bound, found.judged.fpr
    focus = rate.value if rate.count else 0.0
    if bound is not None and str(bound.expression) == "fpr":
        focus = bound.level
    if not 0 < focus < 0.5:
        return unit()
    if focus > 0.02:
        return linear(0.0, min(1.0, 3 * focus), shares=True)
    return logarithmic(max(focus / 20, 1e-7), focus * 10)


def _operating_point(plot: Plot, x: Measured, y: Measured) -> None:
    """The point, and the box that both intervals make."""
    if x.interval is None or y.interval is None:
        return
    plot.box((x.interval.low, y.interval.low), (x.interval.high, y.interval.high), "box")
    plot.dot(x.value, y.value)


def _legend(plot: Plot, curves: tuple[Curves, ...], *, right: bool) -> None:
    """Names in the corner that the curve never enters."""
    x, anchor = (WIDTH - RIGHT - 6, "end") if right else (plot.left + 10, "start")
    bottom = plot.height - BOTTOM - 12
    for place, (curve, style) in enumerate(
        zip(curves[::-1], STYLES[: len(curves)][::-1], strict=True)
    ):
        plot.text(x, bottom - 17 * place, clip(curve.name, 36), anchor, f"t-{style}")


def _point(found: Findings) -> str:
    row = found.judged
    rates = (("false positive rate", row.fpr), ("recall", row.recall), ("precision", row.precision))
    spoken = (f"{name} {percent(r.value)} ({between(r.interval)})" for name, r in rates)
    return f"Operating point on {row.name}: {', '.join(spoken)}."


def _low(rate: Measured) -> float:
    return 1.0 if rate.interval is None else rate.interval.low
