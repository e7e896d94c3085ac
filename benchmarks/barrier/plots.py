"""One plot for each table: every seed a dot, their mean a line or a larger mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.barrier import ablation, auxiliary, consistency, lexicographic, trajectory
from benchmarks.barrier.study import Found, by_seed

OURS, PRINTED, OTHERS = "#0072b2", "#56b4e9", "#d55e00"
GREYS = ("#cccccc", "#999999", "#666666", "#333333")


def colour(method: str) -> str:
    """Ours blue, the printed algorithm light blue, linear combinations orange."""
    start = {"lexicographic": OURS, "printed": PRINTED}
    return next((c for name, c in start.items() if method.startswith(name)), OTHERS)


def panels(path: Path, titles: Sequence[str], draw: Callable[[Any, str], None]) -> None:
    """Plots side by side, each drawn by ``draw(axes, title)``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(titles), 3.4), layout="constrained")
    for axes, title in zip(figure.subplots(1, len(titles), squeeze=False)[0], titles, strict=True):
        axes.set_title(title, loc="left", size=10.5)
        draw(axes, title)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)


def dots(axes: Any, columns: dict[str, dict[int, float]]) -> None:
    """A line of dots for each method, its mean as a bar across them."""
    names = [name for name, found in columns.items() if found]
    for place, name in enumerate(reversed(names)):
        values = [*columns[name].values()]
        axes.plot(values, [place] * len(values), "o", color=colour(name), ms=4, alpha=0.6)
        axes.plot([fmean(values)] * 2, [place - 0.3, place + 0.3], color=colour(name), lw=2)
    axes.set_yticks(range(len(names)), [*reversed(names)], size=8)
    axes.set_xlabel("test accuracy, %")


def draw_lexicographic(rows: Found, path: Path) -> None:
    def draw(axes: Any, network: str) -> None:
        methods = (*lexicographic.GRID, *lexicographic.LEXICOGRAPHIC)
        dots(axes, {m: by_seed(rows, "test", network=network, method=m) for m in methods})

    panels(path, list(lexicographic.RATES), draw)


def draw_consistency(rows: Found, path: Path) -> None:
    def draw(axes: Any, title: str) -> None:
        labels = int(title.split()[0])
        columns = {m: by_seed(rows, "test", labels=labels, method=m) for m in consistency.METHODS}
        dots(axes, columns)

    panels(path, [f"{labels} labels" for labels in consistency.LABELS], draw)


def draw_auxiliary(rows: Found, path: Path) -> None:
    tasks = {f"main {a}, auxiliary {b}": {"main": a, "auxiliary": b} for a, b in auxiliary.TASKS}

    def draw(axes: Any, title: str) -> None:
        for method in auxiliary.METHODS[1:]:  # an untrained auxiliary head is far off the plot
            key = {"method": method, **tasks[title]}
            main = [*by_seed(rows, "main_test", **key).values()]
            other = [*by_seed(rows, "auxiliary_test", **key).values()]
            if len(main) > 1:
                x, y = fmean(other), fmean(main)
                axes.errorbar(x, y, stdev(main), stdev(other), "o", color=colour(method), ms=5)
                axes.annotate(f" {method.removeprefix('weight ')}", (x, y), size=7, va="bottom")
        axes.set(xlabel="auxiliary head, test accuracy, %", ylabel="main head, test accuracy, %")

    panels(path, list(tasks), draw)


def draw_ablation(rows: Found, path: Path) -> None:
    def draw(axes: Any, title: str) -> None:
        for batch in ablation.BATCHES:
            for name, line in (("alpha", "o-"), ("beta", "s--")):
                other = "beta" if name == "alpha" else "alpha"
                keys = [{name: v, other: 1.0, "batch": batch} for v in ablation.VALUES]
                found = [[*by_seed(rows, "loss", method="bound", **k).values()] for k in keys]
                if not all(found):
                    continue
                means = [fmean(each) - ablation.LEVEL for each in found]
                label = f"{name}, {f'batches of {batch}' if batch else 'all rows'}"
                axes.plot(
                    ablation.VALUES, means, line, color=OTHERS if batch else OURS, label=label
                )
        axes.axhline(0, color="black", lw=0.8)
        axes.set(xscale="log", xlabel="value, the other is 1", ylabel="loss minus its bound")
        axes.legend(frameon=False, fontsize=8)

    panels(path, ["a bound on the loss, Adult"], draw)


def draw_trajectory(rows: Found, path: Path) -> None:
    looks = {"loss": 2, "unfairness": 1}

    def draw(axes: Any, title: str) -> None:
        greys = iter(GREYS)
        for method in trajectory.METHODS:
            curves = [row["curve"] for row in rows if row["method"] == method]
            if not curves:
                continue
            values = np.array(curves)[:, :, looks[title]]
            steps = np.array(curves)[0, :, 0]
            ours = method in ("lexicographic", "printed")
            shade = colour(method) if ours else next(greys)
            axes.plot(steps, values.mean(0), color=shade, label=method, lw=2 if ours else 1.2)
            axes.fill_between(steps, values.min(0), values.max(0), color=shade, alpha=0.15, lw=0)
        axes.set(xlabel="steps", ylabel=title)
        axes.legend(frameon=False, fontsize=8)

    panels(path, list(looks), draw)


DRAWN = {
    "lexicographic": draw_lexicographic,
    "consistency": draw_consistency,
    "auxiliary": draw_auxiliary,
    "ablation": draw_ablation,
    "trajectory": draw_trajectory,
}
