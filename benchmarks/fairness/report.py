"""The rows as tables: error and gap of every method, and ours at the same gap."""

from collections import defaultdict
from typing import Any

import numpy as np

OURS = "setpoint, per group"
OWN = ("setpoint", "logistic")
SAME = 0.05
"""Gaps so many points apart count as equal."""
Rows = list[dict[str, Any]]
HEAD = [
    "| set | method | tolerance | error, % | gap, % | met | ours minus it | random | seconds |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
]


def table(rows: Rows) -> str:
    """Markdown: a row for each rule and data set, method and tolerance; then who is ahead where."""
    sets: dict[tuple[str, str], dict[tuple[str, str], Rows]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in sorted(rows, key=lambda row: row["cell"]["seed"]):
        cell = row["cell"]
        for knob, found in row["found"].items():
            one = {**found, "seed": cell["seed"], "seconds": row["seconds"]}
            sets[cell["rule"], cell["data"]][cell["method"], knob].append(one)
    lines, verdicts = [*HEAD], []
    for (rule, data), found in sorted(sets.items()):
        ours = [own for (method, _), own in found.items() if method == OURS]
        for (method, knob), own in found.items():
            apart = None if method == OURS else difference(ours, own)
            lines.append(f"| {rule}, {data} {_line(method, knob, own, apart)}")
            if apart is not None and not method.startswith(OWN):
                verdicts.append((rule, data, f"{method}, {_knob(method, knob)}", *apart))
    return "\n".join([*lines, "", *summary(verdicts)])


def difference(ours: list[Rows], rival: Rows) -> tuple[float, float, float] | None:
    """Our error minus a rival's at its mean gap: mean, standard error, and how much wider ours is.

    Between the two of our tolerances whose mean gaps are nearest, split by split. Where its gap is
    smaller (or larger) than all of ours, ours is taken at our smallest (largest).
    """
    seeds = sorted({row["seed"] for row in rival})
    points = []
    for own in ours:
        known = {row["seed"]: row for row in own}
        if all(seed in known for seed in seeds):
            mine = [known[seed] for seed in seeds]
            points.append((np.mean([r["gap"] for r in mine]), np.array([r["error"] for r in mine])))
    if not points:
        return None
    points.sort(key=lambda point: point[0])
    gaps = np.array([gap for gap, _ in points])
    gap = float(np.mean([row["gap"] for row in rival]))
    columns = np.stack([errors for _, errors in points], 1)
    errors = np.array([np.interp(gap, gaps, column) for column in columns])
    apart = 100 * (errors - np.array([row["error"] for row in rival]))
    spread = float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else float("nan")
    wider = float(np.clip(gap, gaps[0], gaps[-1])) - gap
    return float(apart.mean()), spread, 100 * wider


def _line(method: str, knob: str, own: Rows, apart: tuple[float, float, float] | None) -> str:
    error, gap = (np.array([row[name] for row in own]) for name in ("error", "gap"))
    level = float(knob)
    met = sum(row["gap_low"] <= level + 1e-9 for row in own)
    kept = f"{met}/{len(own)}" if method != "fairret" and level < 1 else ""
    ahead = ""
    if apart is not None:
        word = "wider" if apart[2] > 0 else "narrower"
        other = f" (gap {abs(apart[2]):.1f} {word})" if abs(apart[2]) > SAME else ""
        ahead = f"{apart[0]:+.2f} ± {apart[1]:.2f}{other}"
    dice = max(row["dice"] for row in own)
    return (
        f"| {method} | {_knob(method, knob)} | {_spread(error)} | {_spread(gap)} | {kept} "
        f"| {ahead} | {f'{100 * dice:.0f} %' if dice else 'no'} "
        f"| {np.mean([row['seconds'] for row in own]):.1f} |"
    )


def _knob(method: str, knob: str) -> str:
    if method == "fairret":
        return f"weight {knob}"
    return "none" if knob == "1" else f"{100 * float(knob):g} %"


def _spread(values: np.ndarray) -> str:
    return f"{100 * values.mean():.2f} ± {100 * values.std(ddof=len(values) > 1):.2f}"


def summary(verdicts: list[tuple[str, str, str, float, float, float]]) -> list[str]:
    """For each rule and set the rival that is best against ours, at equal gap."""
    equal = [v for v in verdicts if abs(v[5]) <= SAME]
    smaller = sum(v[5] > SAME for v in verdicts)
    ahead = sum(by <= 0 for *_, by, _, _ in equal)
    lines = [
        f"At equal gap ours has no more error than {ahead} of {len(equal)} rows of rivals; "
        f"{smaller} more have a smaller gap than any of ours, "
        f"{len(verdicts) - len(equal) - smaller} a larger one.",
        "The best rival of each set, ours minus it (standard error over splits):",
        "",
    ]
    for rule, data in dict.fromkeys((rule, data) for rule, data, *_ in verdicts):
        own = [
            (by, error, name) for r, d, name, by, error, wider in equal if (r, d) == (rule, data)
        ]
        if not own:
            lines.append(f"- {rule}, {data}: no rival with a gap as wide as ours.")
            continue
        by, error, name = max(own)
        word = "met" if by <= 0 else "level" if by <= 2 * error else "missed"
        lines.append(f"- {rule}, {data}: {by:+.2f} ({error:.2f}), {name}: {word}.")
    return lines
