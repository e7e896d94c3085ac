"""The tables in words, as Markdown."""

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.points.goals import GOALS, TITLES
from benchmarks.points.methods import FIRST, FOCAL, READINGS, VARIANTS
from benchmarks.points.tables import best_baseline, cells, difference, lost, mean_ranks, paired

Row = dict[str, Any]
UNTUNED = "0.03/0"  # the rate that Classifier takes for linear models
SCREENING = 100  # seeds from here on are of the screening stages


def text(rows: list[Row]) -> str:
    """All tables of these rows."""
    paper = [row for row in rows if row["goal"] == "prauc" and row["batch"] == 0]
    final = [row for row in rows if row["seed"] < SCREENING and row not in paper]
    screened = [row for row in rows if row["seed"] >= SCREENING]
    parts = [_table(name, mine) for name, mine in by_class(final).items()]
    if final:
        parts = ["\n".join(f"- `{g}`: {TITLES[g]}" for g in GOALS), *parts, _lost(final)]
    if screened:
        parts.append(_variants(screened))
    if paper:
        parts.append(_table5(paper))
    return "\n\n".join(parts) or "No rows yet."


def by_class(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by model class and what was changed from the usual: batches of 512, Adam."""
    classes = defaultdict(list)
    for row in rows:
        classes[_class(row)].append(row)
    return classes


def _class(row: Row) -> str:
    changes = []
    if row["optimizer"] != "adam":
        changes.append(row["optimizer"].upper())
    if row["batch"] in (0, 64) and row["data"] != "heart":
        changes.append(f"batches of {row['batch']}" if row["batch"] else "full batch")
    if row["zero_head"]:
        changes.append("zero-initialised head")
    return ", ".join([row["model"], *changes])


def _table(name: str, rows: list[Row]) -> str:
    found = {  # means and ranks of all methods over the same cells
        key: seeds
        for key, seeds in cells(rows).items()
        if any("default" in methods for methods in seeds.values())
    }
    if not found:
        return f"### {name}\n\nThe default has no rows yet."
    goals = [g for g in GOALS if any(key[-1] == g for key in found)]
    ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in mean_ranks(found).items())
    lines = [
        f"### {name}",
        "",
        f"Mean rank over {len(found)} cells: {ranks}.",
        "",
        *_steps_to_it(found),
        f"{_pooled(found)} By cell (standard error, seeds):",
        "",
        "| | " + " | ".join(goals) + " |",
        "|---" * (len(goals) + 1) + "|",
    ]
    for data in dict.fromkeys(key[0] for key in found):
        mine = {key[-1]: seeds for key, seeds in found.items() if key[0] == data}
        lines.append(f"| {data} | " + " | ".join(_entry(mine.get(goal)) for goal in goals) + " |")
    return "\n".join([*lines, "", _means(found, goals)])


def _pooled(found: Any) -> str:
    """The mean difference over all cells, with the standard error over cells."""
    means = [difference(seeds, "default")[0] for seeds in found.values()]
    means = [m for m in means if np.isfinite(m)]
    error = np.std(means, ddof=1) / len(means) ** 0.5 if len(means) > 1 else float("nan")
    return (
        "Default minus the best baseline picked on validation: "
        f"{np.mean(means):+.2f} points (standard error over cells {error:.2f})."
    )


def _steps_to_it(found: Any) -> list[str]:
    """What the two changes to the first default are worth, where rows have both."""
    told = []
    for one, other, words in (
        ("default", FOCAL, "Out of cross-entropy instead of focal loss"),
        (FOCAL, FIRST, "A fifth of the rarer class in every batch instead of its own share"),
    ):
        mean, error, count = paired(found, one, other)
        if count:
            told += [f"{words}: {mean:+.2f} points ({error:.2f}, {count} pairs).", ""]
    return told


def _entry(seeds: Any) -> str:
    mean, error, count = difference(seeds, "default") if seeds else (0.0, 0.0, 0)
    if not count:
        return ""
    return f"{mean:+.1f} ({error:.1f}, {count})" if count > 1 else f"{mean:+.1f} (1)"


def _means(found: Any, goals: list[str]) -> str:
    """The mean of every method over data sets and seeds, goal by goal."""
    lines = ["| points | " + " | ".join(goals) + " |", "|---" * (len(goals) + 1) + "|"]
    for method in READINGS:
        if method in (FIRST, FOCAL):
            continue
        entries = []
        for goal in goals:
            values = [
                methods[method]["test"]
                for key, seeds in found.items()
                if key[-1] == goal
                for methods in seeds.values()
                if method in methods
            ]
            entries.append(f"{np.mean(values):.1f}" if values else "")
        if any(entries):
            lines.append(f"| {method} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _lost(rows: list[Row]) -> str:
    bad = lost(cells(rows))
    if not bad:
        return "No cell is behind the best baseline by more than two standard errors."
    lines = ["Behind the best baseline picked on validation by more than two standard errors:", ""]
    for key, mean, error in bad:
        lines.append(f"- {' '.join(map(str, key))}: {mean:+.2f} ({error:.2f})")
    return "\n".join(lines)


def _table5(rows: list[Row]) -> str:
    """The paper's method by its grid on validation, and our default at one rate, not chosen."""
    lines = [
        "### Table 5 of the paper: PR-AUC for recall in [0.95, 1], linear, full batch",
        "",
        "| | paper's grid of nine | default, untuned | difference (standard error, seeds) |",
        "|---|---|---|---|",
    ]
    for data in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == data]
        theirs = {r["seed"]: r["test"] for r in mine if r["method"] == "paper's grid"}
        ours = {r["seed"]: r["by_rate"][UNTUNED][1] for r in mine if r["method"] == "default"}
        both = [seed for seed in ours if seed in theirs]
        if both:
            a, b = ([values[seed] for seed in both] for values in (theirs, ours))
            d = np.subtract(b, a)
            spread = f"{d.std(ddof=1) / len(d) ** 0.5:.2f}, " if len(d) > 1 else ""
            lines.append(
                f"| {data} | {np.mean(a):.1f} | {np.mean(b):.1f} | "
                f"{d.mean():+.2f} ({spread}{len(d)}) |"
            )
    return "\n".join(lines)


def _variants(rows: list[Row]) -> str:
    """What else was tried: each variant minus the default, paired, by model class."""
    classes = by_class(rows)
    lines = [
        "### Other settings, minus the first default",
        "",
        "On splits of their own; the first default starts as focal loss and takes batches as they "
        "come.",
        "",
        "| points (standard error, pairs) | " + " | ".join(classes) + " |",
        "|---" * (len(classes) + 1) + "|",
    ]
    for name in (*VARIANTS, "best baseline"):
        entries = []
        for mine in classes.values():
            d = [
                (best_baseline(m) if name == "best baseline" else m[name])["test"]
                - m[FIRST]["test"]
                for seeds in cells(mine).values()
                for m in seeds.values()
                if FIRST in m and (name in m or name == "best baseline")
            ]
            error = np.std(d, ddof=1) / len(d) ** 0.5 if len(d) > 1 else float("nan")
            entries.append(f"{np.mean(d):+.2f} ({error:.2f}, {len(d)})" if d else "")
        lines.append(f"| {name} | " + " | ".join(entries) + " |")
    lines.append("")
    for name, mine in classes.items():
        lines += [f"{line} [{name}]" for line in _steps_to_it(cells(mine)) if line]
    return "\n".join(lines)
