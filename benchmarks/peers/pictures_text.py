"""The rows of the pictures as tables: gains over cross-entropy, paired by fold."""

from typing import Any

from benchmarks.peers.faces import DIRECT, GOALS, SHARED
from benchmarks.peers.page import gain, spread, table

PLAIN = "cross-entropy"
RETRAINED = "head re-trained"


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
            entries, everywhere = [], []
            for t in tasks:
                d = [
                    tests[t, number, goal, name] - v
                    for number, v in plain[t].items()
                    if (t, number, goal, name) in tests
                ]
                entries.append(gain(d))
                everywhere += d
            if everywhere:
                lines.append([name, *entries, gain(everywhere)])
        parts.append(table([f"{goal}: points", *tasks, "all"], lines))
    return "\n\n".join(parts) or "No rows yet."
