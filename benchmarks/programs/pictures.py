"""The plots of docs/programs.md."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from benchmarks.programs.report_speed import Row

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777", "#000000")


def _bare(axis: plt.Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)


def speed(rows: list[Row], file: Path) -> None:
    """Forward plus backward by size, one panel a metric."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
    skipped = ("layer, dense A", "HiGHS, duals")
    names = [n for n in dict.fromkeys(r["cell"]["method"] for r in rows) if n not in skipped]
    for axis, metric in zip(axes, ("auc", "f1"), strict=True):
        for i, name in enumerate(names):
            line = [
                (row["cell"]["n"], 1e3 * (row["forward_s"] + row["backward_s"]))
                for row in rows
                if row["cell"]["metric"] == metric
                and row["cell"]["method"] == name
                and "skipped" not in row
            ]
            if line:
                style = "o-" if i < len(COLORS) else "s--"
                axis.loglog(*zip(*line, strict=True), style, color=COLORS[i % 8], label=name)
        axis.set(xlabel="scores", title={"auc": "AUC program", "f1": "F-score program"}[metric])
        sizes = sorted({row["cell"]["n"] for row in rows})
        axis.set_xticks(sizes, map(str, sizes))
        axis.minorticks_off()
        _bare(axis)
    axes[0].set_ylabel("ms of CPU, forward and backward")
    axes[1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(file, dpi=130)
    plt.close(figure)


def curves(rows: list[Row], file: Path) -> None:
    """One class against the rest at a drop rate of 90 %: the mean ROC curve over seeds."""
    mine = [row for row in rows if "curves" in row]
    sets = list(dict.fromkeys(row["cell"]["set"] for row in mine))
    figure, axes = plt.subplots(
        len(sets), 3, figsize=(9, 3 * len(sets)), layout="constrained", squeeze=False
    )
    for line, name in zip(axes, sets, strict=True):
        for k, axis in enumerate(line):
            for i, method in enumerate(dict.fromkeys(r["cell"]["method"] for r in mine)):
                found = [
                    row["curves"][k]
                    for row in mine
                    if row["cell"]["set"] == name and row["cell"]["method"] == method
                ]
                if found:
                    mean = np.mean(found, axis=0)
                    axis.plot(np.linspace(0, 1, len(mean)), mean, color=COLORS[i], label=method)
            axis.plot([0, 1], [0, 1], ":", color="#999999")
            axis.set(title=f"{name}, class {k}", xlabel="false positive rate")
            _bare(axis)
        line[0].set_ylabel("true positive rate")
    axes[0, 0].legend(frameon=False, fontsize=7)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def predicted(rows: list[Row], file: Path) -> None:
    """Each prediction of F1 against the truth."""
    figure, axis = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
    names = {"program": "F-score program", "AP-Perf": "AP-Perf", "game": "its game, by our layer"}
    for i, (key, label) in enumerate(names.items()):
        points = [(row["true"], row[key]) for row in rows if key in row]
        if points:
            axis.plot(
                *zip(*points, strict=True), "o", color=COLORS[i], label=label, alpha=0.7, ms=4
            )
    axis.plot([0, 1], [0, 1], ":", color="#999999")
    axis.set(xlabel="true F1 of the batch", ylabel="predicted F1", xlim=(0, 1), ylim=(-1, 1))
    axis.legend(frameon=False, fontsize=8)
    _bare(axis)
    figure.savefig(file, dpi=130)
    plt.close(figure)
