"""The rows of the pictures as tables: gains over cross-entropy, paired by fold."""

from typing import Any

import numpy as np

from benchmarks.peers.faces import DIRECT, GOALS, SHARED
from benchmarks.peers.page import gain, spread, table

PLAIN = "cross-entropy"
RETRAINED = "head re-trained"


def paired(
    rows: list[dict[str, Any]], goal: str, name: str, task: str | None = None
) -> list[float]:
    """What a method gains on cross-entropy, fold by fold, on one task or on all."""
    tests = {tuple(row["cell"].values()): row["test"] for row in rows}
    return [
        tests[t, number, g, name] - value
        for (t, number, g, method), value in tests.items()
        if (g, method) == (goal, PLAIN) and task in (None, t) and (t, number, g, name) in tests
    ]


def text(rows: list[dict[str, Any]]) -> str:
    """One table a goal: cross-entropy in points, and what the others gain on it, paired."""
    tests = {tuple(row["cell"].values()): row["test"] for row in rows}
    parts = []
    for goal in [g for g in GOALS if any(key[2] == g for key in tests)]:
        tasks = list(dict.fromkeys(key[0] for key in tests if key[2] == goal))
        plain = {
            t: {k[1]: v for k, v in tests.items() if (k[0], k[2], k[3]) == (t, goal, PLAIN)}
            for t in tasks
        }
        lines = [[PLAIN, *(spread(list(plain[t].values())) for t in tasks), ""]]
        for name in (*SHARED[1:], RETRAINED, *DIRECT):
            everywhere = paired(rows, goal, name)
            if everywhere:
                entries = [gain(paired(rows, goal, name, t)) for t in tasks]
                lines.append([name, *entries, gain(everywhere)])
        parts.append(table([f"{goal}: points", *tasks, "all"], lines))
    return "\n\n".join([*parts, _overall(rows)]) if parts else "No rows yet."


def _overall(rows: list[dict[str, Any]]) -> str:
    """The mean over goals: one number a fold and task, so that pairs are independent enough."""
    lines = []
    cells = list(dict.fromkeys((r["cell"]["task"], r["cell"]["fold"]) for r in rows))
    for name in (*SHARED[1:], RETRAINED, *DIRECT):
        line = [name]
        for word in ("FNR", "ROC", ""):
            goals = [g for g in GOALS if g.startswith(word)]
            means = []
            for task, fold in cells:
                here = [r for r in rows if (r["cell"]["task"], r["cell"]["fold"]) == (task, fold)]
                found = [d for goal in goals for d in paired(here, goal, name)]
                means += [float(np.mean(found))] if found else []
            line.append(gain(means))
        if any(line[1:]):
            lines.append(line)
    head = ["mean over goals, points over cross-entropy", "FNR at an FPR", "partial areas", "both"]
    return table(head, lines)
