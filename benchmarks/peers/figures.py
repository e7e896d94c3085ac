"""The figures of docs/peers.md beside those of Table 5: cost, seconds to the mark, pictures."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.peers.faces import DIRECT, GOALS, SHARED
from benchmarks.peers.page import IMAGES
from benchmarks.peers.pictures_text import PLAIN, RETRAINED, paired

OURS, OTHERS = "#0b6e4f", "#8b8b8b"
Row = dict[str, Any]


@contextmanager
def figure(name: str, columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """Axes side by side, written to docs/images when done."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(made)
    axes = made.subplots(1, columns, sharey=True, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    yield axes
    made.savefig(IMAGES / f"peers_{name}.png", dpi=150)


def draw_cost(rows: list[Row], size: int = 512) -> None:
    """The median step of every method over cross-entropy's, on three models; one goal a panel."""
    here = [row for row in rows if row["cell"]["size"] == size]
    goals = list(dict.fromkeys(row["cell"]["goal"] for row in here))
    every = dict.fromkeys(n for row in here for n in row["seconds"])
    names = [n for n in every if "eager" not in n and n != PLAIN]
    with figure("cost", len(goals), (10, 4.6)) as axes:
        for axis, goal in zip(axes, goals, strict=True):
            for row in (row for row in here if row["cell"]["goal"] == goal):
                plain = np.array(row["seconds"][PLAIN])
                own = {n: np.median(np.array(row["seconds"][n]) / plain) for n in row["seconds"]}
                known = [n for n in names if n in own]
                places = [len(names) - names.index(n) for n in known]
                marker = {"criterion alone": "o", "linear, 122 features": "s"}
                colors = [OURS if n in ("Implicit", "LastLayer") else OTHERS for n in known]
                axis.scatter(
                    [own[n] for n in known],
                    places,
                    c=colors,
                    marker=marker.get(row["cell"]["model"], "^"),
                    label=row["cell"]["model"],
                )
            axis.axvline(1, color="0.8", lw=1, zorder=0)
            axis.set(xscale="log", title=goal, xlabel="times cross-entropy's step")
            axis.set_xticks(ticks := [1, 2, 4, 8], map(str, ticks))
            axis.minorticks_off()
        axes[0].set_yticks(range(len(names), 0, -1), names)
        axes[0].legend(frameon=False, fontsize=8)


REACHING = {
    PLAIN: "k",
    "Implicit": OURS,
    "ICO as published": "#c98c1b",
    "LastLayer": "#54b08c",
    "Lagrangian": "#2b4c9b",
    "TFCO Lagrangian": "#c05621",
    "Cooper": "#8b5fbf",
    "LibAUC pAUC-CVaR + SOPA": "#777777",
}
"""One line for each library; the table has all methods."""


def draw_reach(rows: list[Row]) -> None:
    """The validation metric against seconds of steps, the mean of the trials; one cell a panel."""
    cells = list(dict.fromkeys((r["cell"]["data"], r["cell"]["model"]) for r in rows))
    with figure("reach", len(cells), (3.2 * len(cells), 3.6)) as axes:
        for axis, cell in zip(axes, cells, strict=True):
            for name, color in REACHING.items():
                mine = [r for r in rows if _cell(r) == (*cell, name)]
                if mine:
                    path = np.mean([r["path"] for r in mine], 0)
                    best = np.maximum.accumulate(path[:, 1])
                    axis.plot(path[:, 0], best, color=color, lw=1.3, label=name)
            axis.set(title=", ".join(cell), xlabel="seconds of steps", xscale="log")
        axes[0].set_ylabel("best TPR at FPR 5 % so far")
        named = axes[-1].get_legend_handles_labels()
        axes[0].legend(*named, frameon=False, fontsize=7, loc="lower right")


def _cell(row: Row) -> tuple[str, str, str]:
    cell = row["cell"]
    return cell["data"], cell["model"], cell["method"]


def draw_pictures(rows: list[Row]) -> None:
    """The mean gain over cross-entropy, two standard errors; one panel rates, the other areas."""
    names = [n for n in (*SHARED[1:], RETRAINED, *DIRECT) if any(_named(r, n) for r in rows)]
    goals = [g for g in GOALS if any(row["cell"]["goal"] == g for row in rows)]
    kinds = [[g for g in goals if g.startswith(word)] for word in ("FNR", "ROC")]
    with figure("pictures", 2, (10, 4.2)) as axes:
        for axis, kind in zip(axes, kinds, strict=True):
            for shift, goal in enumerate(kind):
                shade = str(0.15 + 0.6 * shift / max(1, len(kind) - 1))
                for place, name in enumerate(names):
                    d = np.array(paired(rows, goal, name))
                    if len(d):
                        wide = 2 * d.std(ddof=1) / len(d) ** 0.5 if len(d) > 1 else 0.0
                        y = len(names) - place - 0.13 * shift
                        label = goal if place == 0 else None
                        axis.errorbar(d.mean(), y, xerr=wide, fmt="o", ms=4, c=shade, label=label)
            axis.axvline(0, color="0.8", lw=1, zorder=0)
            axis.set(xlabel="points over cross-entropy")
            if kind:
                axis.legend(frameon=False, fontsize=7)
        axes[0].set_yticks(range(len(names), 0, -1), names)


def _named(row: Row, name: str) -> bool:
    return bool(row["cell"]["method"] == name)
