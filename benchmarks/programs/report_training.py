"""Markdown of the training runs: means and deviations over seeds, in points."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.tables import mean_and_deviation
from benchmarks.programs.report_speed import Row, table

SETS = {"catdog": "Cat&Dog", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


def of(rows: list[Row], part: str) -> list[Row]:
    """The runs of one part."""
    return [row for row in rows if row["cell"]["part"] == part]


def cell(rows: list[Row], measure: str, **wanted: Any) -> str:
    """Mean and deviation over seeds; how many, if not five."""
    values = [100 * row[measure] for row in rows if wanted.items() <= row["cell"].items()]
    if not values:
        return "not run"
    count = "" if len(values) == 5 else f" ({len(values)})"
    return f"{mean_and_deviation(values)}{count}"


def grid(rows: list[Row], measure: str, amount: str) -> str:
    """Methods down; sets and the amounts of imbalance across."""
    methods = list(dict.fromkeys(row["cell"]["method"] for row in rows))
    columns = sorted(
        {(row["cell"]["set"], row["cell"][amount]) for row in rows},
        key=lambda column: (list(SETS).index(column[0]), -column[1]),
    )
    lines = []
    for method in methods:
        found = [cell(rows, measure, set=s, method=method, **{amount: a}) for s, a in columns]
        lines.append([method, *found])
    return table(["", *(f"{SETS[s]} {100 * a:.0f} %" for s, a in columns)], lines)


def f1(rows: list[Row]) -> str:
    """F1 and the share decided positive at 0 and at the best threshold of the training part."""
    lines = []
    for name in dict.fromkeys(row["cell"]["set"] for row in rows):
        for method in dict.fromkeys(row["cell"]["method"] for row in rows):
            mine = [r for r in rows if r["cell"]["set"] == name and r["cell"]["method"] == method]
            if not mine:
                continue
            measures = ("f1", "share", "f1_tuned", "share_tuned", "accuracy_tuned", "auc")
            found = [cell(mine, m) if m in mine[0] else "-" for m in measures]
            seconds = np.mean([1e3 * row["seconds"] / row["steps"] for row in mine])
            lines.append([SETS[name], method, str(mine[0]["steps"]), *found, f"{seconds:.1f}"])
    head = ["set", "trained with", "steps", "F1 at 0", "positive", "F1, tuned", "positive"]
    head += ["accuracy", "AUC"]
    return table([*head, "ms a step"], lines)


def epsilon(rows: list[Row]) -> str:
    """Forms of the loss down, widths across; how many steps had no gradient."""
    forms: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(row["cell"]["method"] for row in rows):
        kind, width, *of_what = name.split()
        forms.setdefault(" ".join([kind, *of_what]), {})[width] = name
    widths = ["0.1", "0.01", "0.001"]
    lines = []
    for form, names in forms.items():
        found = []
        for width in widths:
            mine = [r for r in rows if r["cell"]["method"] == names.get(width)]
            still = 100 * np.mean([r["no_gradient"] for r in mine]) if mine else 0.0
            found.append(f"{cell(mine, 'auc')}, {still:.0f} % without" if mine else "not run")
        lines.append([form, *found])
    return table(["", *(f"epsilon {width}" for width in widths)], lines)


def rates(rows: list[Row]) -> str:
    """Methods down, learning rates across."""
    found = sorted({row["cell"]["rate"] for row in rows})
    lines = [
        [method, *(cell(rows, "auc", method=method, rate=rate) for rate in found)]
        for method in dict.fromkeys(row["cell"]["method"] for row in rows)
    ]
    return table(["", *map(str, found)], lines)


def predicted(rows: list[Row]) -> str:
    """Mean error and correlation of each prediction of F1 with the truth."""
    lines = []
    true = np.array([row["true"] for row in rows])
    for name in ("program", "AP-Perf", "game"):
        there = [row for row in rows if name in row]
        if len(there) != len(rows):
            continue
        said = np.array([row[name] for row in there])
        error = np.abs(said - true).mean()
        linked = np.corrcoef(said, true)[0, 1]
        below = (said <= true + 1e-9).mean()
        lines.append([name, f"{error:.3f}", f"{linked:.2f}", f"{100 * below:.0f} %"])
    return table(["prediction", "mean error", "correlation", "at most the true F1"], lines)
