"""The tables in words, as Markdown."""

from collections import defaultdict
from typing import Any

from benchmarks.points.goals import GOALS
from benchmarks.points.methods import READINGS
from benchmarks.points.tables import cells, difference, lost, mean_ranks

Row = dict[str, Any]


def text(rows: list[Row]) -> str:
    """All tables of these rows."""
    if not rows:
        return "No rows yet."
    return "\n\n".join([*_by_class(rows), _lost(rows)])


def _by_class(rows: list[Row]) -> list[str]:
    classes = defaultdict(list)
    for row in rows:
        classes[_class(row)].append(row)
    return [_table(name, mine) for name, mine in classes.items()]


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
    found = cells(rows)
    ranks = mean_ranks(found)
    goals = [g for g in GOALS if any(key[-1] == g for key in found)]
    lines = [
        f"### {name}",
        "",
        "Mean rank: " + ", ".join(f"{m} {r:.2f}" for m, r in ranks.items()) + ".",
        "",
        "Default minus the best baseline picked on validation, points (standard error, seeds):",
        "",
        "| | " + " | ".join(goals) + " |",
        "|---" * (len(goals) + 1) + "|",
    ]
    for data in dict.fromkeys(key[0] for key in found):
        entries = []
        for goal in goals:
            seeds = next((s for k, s in found.items() if (k[0], k[-1]) == (data, goal)), None)
            entries.append(_entry(seeds))
        lines.append(f"| {data} | " + " | ".join(entries) + " |")
    return "\n".join([*lines, "", _means(found, goals)])


def _entry(seeds: Any) -> str:
    mean, error, count = difference(seeds, "default") if seeds else (0.0, 0.0, 0)
    return f"{mean:+.1f} ({error:.1f}, {count})" if count else ""


def _means(found: Any, goals: list[str]) -> str:
    """The mean of every method over data sets and seeds, goal by goal."""
    lines = ["| points | " + " | ".join(goals) + " |", "|---" * (len(goals) + 1) + "|"]
    for method in READINGS:
        entries = []
        for goal in goals:
            values = [
                methods[method]["test"]
                for key, seeds in found.items()
                if key[-1] == goal
                for methods in seeds.values()
                if method in methods
            ]
            entries.append(f"{sum(values) / len(values):.1f}" if values else "")
        if any(entries):
            lines.append(f"| {method} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _lost(rows: list[Row]) -> str:
    bad = lost(cells(rows))
    if not bad:
        return "No cell is behind the best baseline by more than two standard errors."
    lines = ["Behind the best baseline picked on validation by more than two standard errors:"]
    for key, mean, error in bad:
        lines.append(f"- {' '.join(map(str, key))}: {mean:+.2f} ({error:.2f})")
    return "\n".join(lines)
