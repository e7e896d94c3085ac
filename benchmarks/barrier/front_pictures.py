"""Fronts of several methods in panels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLOURS = {
    "barrier": "#0072b2",
    "linear": "#d55e00",
    "scaled linear": "#e69f00",
    "fairlearn ExponentiatedGradient": "#009e73",
    "fairlearn GridSearch": "#cc79a7",
}
MARKS = {"barrier": "o", "linear": "*", "scaled linear": "^"}


def panels(
    path: Path,
    titles: Sequence[str],
    rows: Sequence[Sequence[dict[str, Any]]],
    axes_names: tuple[str, str],
    methods: Sequence[str],
) -> None:
    """One panel for each title; each row of a panel is one method's front."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(titles), 3.6), layout="constrained")
    for axes, title, found in zip(
        figure.subplots(1, len(titles), squeeze=False)[0], titles, rows, strict=True
    ):
        axes.set_title(title, loc="left", size=10.5)
        axes.set_xlabel(axes_names[0])
        for row in sorted(found, key=lambda r: methods.index(r["method"]), reverse=True):
            scatter(axes, [p[1] for p in row["pairs"]], [p[0] for p in row["pairs"]], row["method"])
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(axes_names[1])
    figure.axes[-1].legend(frameon=False)
    figure.savefig(path, dpi=150)


def scatter(axes: Any, x: Sequence[float], y: Sequence[float], method: str) -> None:
    """The points of one method; ours on top."""
    axes.scatter(
        x,
        y,
        label=method,
        marker=MARKS.get(method, "s"),
        color=COLOURS.get(method, "#999999"),
        s=60 if MARKS.get(method) == "*" else 26,
        zorder=3 if method == "barrier" else 2,
    )


def fairness(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Figure 2: the front on training data, and what decisions do on the test part."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    first = [row for row in rows if row["seed"] == 0 and row["hidden"] == 0]
    for row in first:
        if "pairs" in row:
            scatter(left, [p[1] for p in row["pairs"]], [p[0] for p in row["pairs"]], row["method"])
        found = row["measures"]
        ratios, accuracies = ([m[k] for m in found] for k in ("impact ratio", "accuracy"))
        scatter(right, ratios, [100 * a for a in accuracies], row["method"])
    left.set_xlabel("cross-entropy, training rows")
    left.set_ylabel("covariance with sex")
    right.set_xlabel("ratio of coverages (disparate impact), test rows")
    right.set_ylabel("test accuracy, percent")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
