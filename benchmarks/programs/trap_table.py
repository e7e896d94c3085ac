"""The table of the all-positive trap."""

from __future__ import annotations

from statistics import fmean

from benchmarks.common.tables import mean_and_deviation

METHODS = (
    "cross-entropy",
    "f1",
    "f1, no lift",
    "f1, warm start",
    "f1, best threshold",
    "f1, best threshold, warm start",
    "structural f1",
    "Implicit",
)


def table(rows: list[dict[str, object]]) -> str:
    """Means over seeds with their deviation, in points."""
    lines = [
        "| data | trained by | F1 at its threshold | F1, threshold from validation | accepted "
        "| caught |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(r["set"] for r in rows):
        here = [r for r in rows if r["set"] == name]
        everybody = fmean(float(r["all"]) for r in here)
        lines.append(f"| {name} | *accept everybody* | {100 * everybody:.1f} | | 100 % | |")
        for method in METHODS:
            mine = [r for r in here if r["method"] == method]
            if mine:
                caught = sum(float(r["accepted"]) > 0.98 for r in mine)
                lines.append(
                    f"| {name} | {method} | {per_cent(mine, 'f1')} | {per_cent(mine, 'tuned')} "
                    f"| {100 * fmean(float(r['accepted']) for r in mine):.0f} % "
                    f"| {caught} of {len(mine)} |"
                )
    return "\n".join(lines)


def per_cent(rows: list[dict[str, object]], key: str) -> str:
    return mean_and_deviation([100 * float(r[key]) for r in rows])
