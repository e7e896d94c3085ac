"""Tables beside the main one: what led to the default."""

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.points.ideas import IDEAS
from benchmarks.points.methods import FIRST, FOCAL, VARIANTS
from benchmarks.points.tables import best_baseline, cells, paired

Row = dict[str, Any]


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


def steps_to_it(found: Any) -> list[str]:
    """What two changes to the first default are worth, and the default itself beside the paper."""
    told = []
    for one, other, words in (
        ("default", FOCAL, "Out of cross-entropy instead of focal loss"),
        (FOCAL, FIRST, "A fifth of the rarer class in every batch instead of its own share"),
        ("default", "paper's grid", "Default minus the paper's settings, the best of its nine"),
    ):
        mean, error, count = paired(found, one, other)
        if count:
            told += [f"{words}: {mean:+.2f} points ({error:.2f}, {count} pairs).", ""]
    return told


def variants(rows: list[Row]) -> str:
    """What else was tried: each variant minus the default, paired, by model class."""
    classes = by_class(rows)
    lines = [
        "## Other settings, minus the first default",
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
        lines += [f"{line} [{name}]" for line in steps_to_it(cells(mine)) if line]
    return "\n".join(lines)


def tried(rows: list[Row]) -> str:
    """Ideas for the default: each minus the default of the same splits, by model class."""
    classes = {name: cells(mine) for name, mine in by_class(rows).items()}
    lines = [
        "## Ideas, minus the default",
        "",
        "On splits of their own, where the default was trained beside them.",
        "",
        "| points (standard error, pairs) | " + " | ".join(classes) + " |",
        "|---" * (len(classes) + 1) + "|",
    ]
    for name in IDEAS:
        entries = []
        for found in classes.values():
            mean, error, count = paired(found, name, "default")
            entries.append(f"{mean:+.2f} ({error:.2f}, {count})" if count else "")
        lines.append(f"| {name} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def by_limit(rows: list[Row]) -> str:
    """The gain over the best baseline by what ``diagnose`` says of cross-entropy's scores."""
    gains: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, seeds in cells(rows).items():
        for methods in seeds.values():
            limit = methods.get("cross-entropy", {}).get("limit")
            if limit and "default" in methods:
                gain = methods["default"]["test"] - best_baseline(methods)["test"]
                gains[limit, key[1]].append(gain)
    models = dict.fromkeys(model for _, model in gains)
    lines = [
        "## By what `diagnose` says of cross-entropy's scores",
        "",
        "| default minus the best baseline, points (standard error, pairs) | "
        + " | ".join(models)
        + " |",
        "|---" * (len(models) + 1) + "|",
    ]
    for limit in dict.fromkeys(limit for limit, _ in gains):
        entries = [_spread(gains.get((limit, model), [])) for model in models]
        lines.append(f"| limited by {limit} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:+.1f} (1)" if values else ""
    error = np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):+.2f} ({error:.2f}, {len(values)})"
