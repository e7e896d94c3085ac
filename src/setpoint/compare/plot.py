"""ROC and precision-recall curves of all methods, around the operating point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.problems import Infeasible, Problem
from setpoint.results import mean_curve, pr_curve, roc_curve

if TYPE_CHECKING:
    from setpoint.compare.comparison import Comparison

LOWEST = 1e-4


def plot(comparison: Comparison, file: Path) -> None:
    """Write what :func:`draw` draws."""
    draw(comparison).savefig(file, dpi=150)


def draw(comparison: Comparison) -> Any:
    """A figure of two panels: ROC on a logarithmic FPR, and precision against recall.

    A dot is where a method is judged: the mean over seeds of its exact operating point on the test
    part (several dots for an area).
    """
    known = [t for t in comparison.trials if t.scores is not None]
    if not known or not comparison.labels:
        raise ValueError("There are no scores to draw: a comparison read from JSON has none.")
    try:
        import matplotlib
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "setpoint[demo]".') from None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        for method in dict.fromkeys(t.method for t in known):
            mine = [t for t in known if t.method == method]
            pairs = [(t.scores, comparison.labels[t.seed]) for t in mine]
            levels = np.geomspace(LOWEST, 1, 300)
            curve = mean_curve([roc_curve(*pair) for pair in pairs], levels)
            (line,) = left.plot(curve.fpr, curve.tpr, label=method, lw=1.4)
            _precision_recall(right, pairs, line.get_color())
            _operating_points(left, right, comparison.problem, pairs, line.get_color())
        left.set(xscale="log", xlabel="false positive rate", ylabel="true positive rate")
        left.set_xlim(LOWEST, 1)
        left.legend(frameon=False)
        right.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02))
        figure.suptitle(str(comparison.problem), fontsize=10)
    return figure


def _precision_recall(axis: Any, pairs: list[tuple[Any, Any]], color: str) -> None:
    """The mean over seeds, on a common grid of recalls."""
    grid = np.linspace(0.01, 1, 200)
    curves = []
    for scores, labels in pairs:
        found = pr_curve(scores, labels)
        order = np.argsort(found.recall, kind="stable")
        curves.append(np.interp(grid, found.recall[order], found.precision[order]))
    axis.plot(grid, np.mean(curves, axis=0), lw=1.4, color=color)


def _operating_points(
    left: Any, right: Any, problem: Problem, pairs: list[tuple[Any, Any]], color: str
) -> None:
    """A dot in both panels for every threshold of the problem."""
    found = []
    for scores, labels in pairs:
        try:
            thresholds = problem.choose(scores, labels).thresholds
        except Infeasible:  # the table says so; there is no point to draw
            continue
        found.append([rates_at(scores > t, labels == 1) for t in thresholds])
    if found:
        fpr, tpr, precision = np.mean(found, axis=0).T
        left.plot(fpr, tpr, "o", color=color, ms=5)
        right.plot(tpr, precision, "o", color=color, ms=5)


def rates_at(accepted: Any, positive: Any) -> tuple[float, float, float]:
    """False and true positive rate and precision; precision is 1 where nobody is accepted."""
    hits, alarms = float((accepted & positive).sum()), float((accepted & ~positive).sum())
    precision = hits / (hits + alarms) if hits + alarms else 1.0
    return alarms / max(1, (~positive).sum()), hits / max(1, positive.sum()), precision
