"""The picture of a front: one loss against the other, the levels that were asked for behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from setpoint.pareto.front import Front

INK, FAINT = "#24292f", "#d9dde2"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")  # Okabe and Ito's
MARKS = ("o", "*", "^", "s", "D", "v")


def draw(front: Front, others: Mapping[str, Front], path: Path | None) -> Figure:
    """One panel; dominated points are hollow."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.family": "sans-serif", "font.size": 10, "svg.hashsalt": "setpoint"}):
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        axes = figure.subplots()
        frame(axes, front.names[1], front.names[0])
        for point in front.points:
            if point.level is not None:
                axes.axvline(point.level, color=FAINT, linewidth=0.7, zorder=0.5)
        series = {front.method: front, **others}
        for number, (name, one) in enumerate(series.items()):
            points(axes, one, name, number)
        if others:
            axes.legend(frameon=False, labelcolor=INK)
        if path is not None:
            undated = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, dpi=160, metadata=undated)
    return figure


def frame(axes: Any, x: str, y: str) -> None:
    """Few lines: the eye should find the points."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK)
    axes.set_axisbelow(True)


def points(axes: Any, front: Front, name: str, number: int) -> None:
    """The points of one front, joined along the held objective."""
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    ordered = sorted(zip(front.points, front.non_dominated, strict=True), key=lambda p: p[0].held)
    kept = [point for point, flag in ordered if flag]
    axes.plot([p.held for p in kept], [p.minimized for p in kept], color=colour, linewidth=1.2)
    for flag, fill, label in ((True, colour, name), (False, "white", None)):
        chosen = [point for point, kept_flag in ordered if kept_flag == flag]
        axes.scatter(
            [point.held for point in chosen],
            [point.minimized for point in chosen],
            s=64 if mark == "*" else 34,
            marker=mark,
            facecolors=fill,
            edgecolors=colour,
            zorder=3,
            label=label,
        )
