"""The rows as tables: error and gap of every method, and ours at the same gap."""

from collections import defaultdict
from typing import Any

import numpy as np

OURS = "setpoint, per group"
Found = dict[tuple[str, float], list[dict[str, Any]]]


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, one table for each rule and data set."""
    sets: dict[tuple[str, str], Found] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cell = row["cell"]
        sets[cell["rule"], cell["data"]][cell["method"], cell["tolerance"]].append(row)
    lines, verdicts = [], []
    for (rule, data), found in sorted(sets.items()):
        lines += ["", f"**{rule.capitalize()}, {data}**", "", *HEAD]
        curve = _curve(found)
        for (method, tolerance), own in found.items():
            error, gap = (np.array([row[name] for row in own]) for name in ("error", "gap"))
            ours = _at(curve, float(gap.mean())) if curve and method != OURS else None
            ahead = "" if ours is None else f"{100 * (ours - error.mean()):+.2f}"
            if ours is not None and not method.startswith(("setpoint", "logistic")):
                verdicts.append((rule, data, method, 100 * (ours - error.mean())))
            met = sum(row["gap_low"] <= tolerance + 1e-9 for row in own)
            kept = f"{met}/{len(own)}" if method != "fairret" and tolerance < 1 else ""
            dice = max(row["dice"] for row in own)
            lines.append(
                f"| {method} | {_knob(method, tolerance)} | {_spread(error)} | {_spread(gap)} "
                f"| {kept} | {ahead} | {f'{100 * dice:.0f} %' if dice else 'no'} "
                f"| {np.mean([row['seconds'] for row in own]):.1f} |"
            )
    return "\n".join([*lines, "", *_summary(verdicts)])


HEAD = [
    "| method | tolerance | error, % | gap on test, % | met | ours at this gap | dice | seconds |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
]


def _knob(method: str, tolerance: float) -> str:
    if method == "fairret":
        return f"weight {tolerance:g}"
    return "none" if tolerance == 1 else f"{100 * tolerance:g} %"


def _curve(found: Found) -> list[tuple[float, float]]:
    """Our mean error by our mean gap, from small gaps to large, never rising."""
    points = sorted(
        (float(np.mean([r["gap"] for r in own])), float(np.mean([r["error"] for r in own])))
        for (method, _), own in found.items()
        if method == OURS
    )
    best, curve = np.inf, []
    for gap, error in points:
        best = min(best, error)
        curve.append((gap, best))
    return curve


def _at(curve: list[tuple[float, float]], gap: float) -> float | None:
    """Our error at a gap, between our points; at smaller gaps than all of ours there is none."""
    if gap < curve[0][0]:
        return None
    return float(np.interp(gap, *zip(*curve, strict=True)))


def _spread(values: np.ndarray) -> str:
    return f"{100 * values.mean():.2f} ± {100 * values.std(ddof=len(values) > 1):.2f}"


def _summary(verdicts: list[tuple[str, str, str, float]]) -> list[str]:
    ahead = sum(by <= 0 for *_, by in verdicts)
    lines = [f"At equal gap ours has no more error in {ahead} of {len(verdicts)} rows of rivals."]
    for rule, data in dict.fromkeys((rule, data) for rule, data, *_ in verdicts):
        own = [(by, method) for r, d, method, by in verdicts if (r, d) == (rule, data)]
        by, method = max(own)
        lines.append(f"- {rule}, {data}: against the best rival ({method}) {by:+.2f} points.")
    return lines
