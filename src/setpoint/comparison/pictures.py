"""Pictures of a comparison, by matplotlib: curves of all methods, and the corner of a ROC curve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._extras import optional
from setpoint._files import save_figure
from setpoint.comparison.trials import MethodTrial
from setpoint.problems import Infeasible, Problem
from setpoint.results import Curve, mean_curve, pr_curve, roc_curve

INK, FAINT = "#24292f", "#d9dde2"
COLOURS = ("#e69f00", "#0072b2")  # Okabe and Ito's orange and blue: apart for every eye
_LOWEST = 1e-4


def scored_parts(
    trials: Iterable[MethodTrial], labels: Mapping[int, Any]
) -> dict[str, list[tuple[Any, Any]]]:
    """Scores and labels of the test parts, by method."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for trial in trials:
        if trial.scores:
            found.setdefault(trial.method, []).append((trial.scores["test"], labels[trial.seed]))
    return found


def draw_comparison(
    problem: Problem, trials: Sequence[MethodTrial], labels: Mapping[int, Any]
) -> Any:
    """A figure of two panels: ROC on a logarithmic FPR, and precision against recall.

    A dot is where a method is judged: the mean over seeds of its exact operating point on the test
    part (several dots for an area).
    """
    methods = scored_parts(trials, labels) if labels else {}
    if not methods:
        raise ValueError("There are no scores to draw: a comparison read from JSON has none.")
    matplotlib = optional("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        for method, pairs in methods.items():
            levels = np.geomspace(_LOWEST, 1, 300)
            curve = mean_curve([roc_curve(*pair) for pair in pairs], levels)
            (line,) = left.plot(curve.fpr, curve.tpr, label=method, lw=1.4)
            _draw_precision_recall(right, pairs, line.get_color())
            _operating_points(left, right, problem, pairs, line.get_color())
        left.set(xscale="log", xlabel="false positive rate", ylabel="true positive rate")
        left.set_xlim(_LOWEST, 1)
        left.legend(frameon=False)
        right.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02))
        figure.suptitle(str(problem), fontsize=10)
    return figure


def _draw_precision_recall(axis: Any, pairs: list[tuple[Any, Any]], color: str) -> None:
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


def draw_corner(
    paths: Sequence[Path],
    panels: Mapping[str, Mapping[str, Sequence[Curve]]],
    *,
    held: float,
    title: str,
    note: str,
    fpr: tuple[float, float] = (0.001, 0.1),
) -> None:
    """Draw the ROC curves at low false positive rates, and write the picture to ``paths``.

    Args:
        paths: Files to write; the ending decides the kind (``.png``, ``.svg``).
        panels: By title, side by side: the curves of every run, by method, a baseline and ours.
        held: The FPR at which the models are judged; it is marked.
        title: One line above all panels.
        note: Small print below them: data, runs, settings.
        fpr: The part of the FPR axis that is shown; the TPR axis starts below the lowest curve.
    """
    optional("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    curves = [one for methods in panels.values() for runs in methods.values() for one in runs]
    lowest = min(float(mean_curve([one], fpr[0]).tpr[0]) for one in curves)
    with rc_context({"font.family": "sans-serif", "font.size": 10, "svg.hashsalt": "setpoint"}):
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        figure = Figure(figsize=(1 + 4.4 * len(panels), 4.4), layout=layout)
        figure.suptitle(title, x=0.012, ha="left", color=INK, weight="bold", size=13)
        figure.supxlabel(note, x=0.012, ha="left", color="#6a7078", size=8)
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        row[0].set_ylabel("true positive rate", color=INK)
        for axes, (name, methods) in zip(row, panels.items(), strict=True):
            _frame(axes, name, fpr, min(math.floor(10 * lowest) / 10, 0.9))
            axes.axvline(held, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
            for (method, runs), colour in zip(methods.items(), COLOURS, strict=True):
                _runs(axes, method, runs, colour, held, fpr)
            _corner_legend(axes, held)
        for path in paths:
            save_figure(path, figure, dpi=200)


def _frame(axes: Any, title: str, fpr: tuple[float, float], lowest_tpr: float) -> None:
    """Few lines: the eye should find the curves."""
    axes.set_title(title, loc="left", color=INK, size=10.5, pad=10)
    axes.set(xlabel="false positive rate", xscale="log", xlim=fpr)
    axes.set_ylim(lowest_tpr, 1 + 0.01 * (1 - lowest_tpr))  # room for a line at the top
    axes.xaxis.set_major_formatter(_percent_tick)
    axes.yaxis.set_major_formatter(_percent_tick)
    axes.grid(axis="y", color=FAINT, linewidth=0.7)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)


def _runs(
    axes: Any,
    method: str,
    runs: Sequence[Curve],
    colour: str,
    held: float,
    fpr: tuple[float, float],
) -> None:
    """A thin line for each run, a bold one for their mean, a dot where the models are judged."""
    for x, y in runs:
        axes.step(x, y, where="post", color=colour, linewidth=0.8, alpha=0.5)
    mean = mean_curve(runs, np.geomspace(*fpr, 500))
    axes.step(mean.fpr, mean.tpr, where="post", color=colour, linewidth=2.6)
    at = float(mean_curve(runs, held).tpr[0])
    label = f"{100 * at:.1f} %  {method}"
    edge = {"markeredgecolor": "white", "markeredgewidth": 1.5}
    axes.plot(
        held, at, "o", color=colour, markersize=9, label=label, clip_on=False, zorder=5, **edge
    )


def _corner_legend(axes: Any, held: float) -> None:
    """What the dots say, ours first, in the corner that a ROC curve never enters."""
    dots, labels = axes.get_legend_handles_labels()
    axes.legend(
        dots[::-1],
        labels[::-1],
        title=f"found at {_percent_tick(held)} false alarms",
        loc="lower right",
        alignment="left",
        framealpha=1,
        edgecolor="white",
        handletextpad=0.1,
        bbox_to_anchor=(1, 0.02),  # its white box must not hide the axis
    )


def _percent_tick(share: float, _position: object = None) -> str:
    return f"{100 * share:g} %"
