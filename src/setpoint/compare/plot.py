"""ROC and precision-recall curves of all methods, around the operating point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.results import mean_curve, pr_curve, roc_curve

if TYPE_CHECKING:
    from setpoint.compare.comparison import Comparison

LOWEST = 1e-4


def plot(comparison: Comparison, file: Path) -> None:
    """Two panels: ROC on a logarithmic FPR, and precision against recall."""
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
            left.plot(curve.fpr, curve.tpr, label=method, lw=1.4)
            _precision_recall(right, pairs)
        left.set(xscale="log", xlabel="false positive rate", ylabel="true positive rate")
        left.set_xlim(LOWEST, 1)
        left.legend(frameon=False)
        right.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02))
        figure.suptitle(str(comparison.problem), fontsize=10)
        figure.savefig(file, dpi=150)


def _precision_recall(axis: Any, pairs: list[tuple[Any, Any]]) -> None:
    """The mean over seeds, on a common grid of recalls."""
    grid = np.linspace(0.01, 1, 200)
    curves = []
    for scores, labels in pairs:
        found = pr_curve(scores, labels)
        order = np.argsort(found.recall, kind="stable")
        curves.append(np.interp(grid, found.recall[order], found.precision[order]))
    axis.plot(grid, np.mean(curves, axis=0), lw=1.4)
