"""The rows of ``benchmarks.boosting`` as tables: gains over log-loss, paired by split."""

from typing import Any

import numpy as np

from benchmarks.common.tables import mean_and_deviation

HIGHER = ("precision at recall 95 %",)
KEYS = ("library", "size", "data")
Found = dict[tuple[str, ...], dict[int, float]]


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: log-loss's value, the goal's, and the gain, in points."""
    found = _picked(rows)
    lines: list[str] = []
    gains = []
    for goal in dict.fromkeys(key[0] for key in found):
        lines += ["", f"**{goal}** ({'higher' if goal in HIGHER else 'lower'} is better)", ""]
        lines.append("| library | trees x leaves | data | log-loss | goal | gain | splits |")
        lines.append("| --- | --- | --- | --- | --- | --- | --- |")
        for key in sorted(key for key in found if key[0] == goal and key[-1] == "log-loss"):
            plain, other = found[key], found.get((*key[:-1], "goal"), {})
            both = sorted(set(plain) & set(other))
            if both:
                a, b = (np.array([values[seed] for seed in both]) for values in (plain, other))
                gain = b - a if goal in HIGHER else a - b
                gains.append((key[2], gain))
                shown = f"{mean_and_deviation(a)} | {mean_and_deviation(b)} | {_gain(gain)}"
                lines.append(f"| {' | '.join(key[1:-1])} | {shown} | {len(both)} |")
    return "\n".join([*lines, "", *_overall(gains)])


def _picked(rows: list[dict[str, Any]]) -> Found:
    """The test value of the learning rate that is best on validation, for each split."""
    best: dict[tuple[Any, ...], tuple[float, float]] = {}
    for row in rows:
        cell = row["cell"]
        for goal, value in row["values"].items():
            key = (goal, *(cell[name] for name in KEYS), cell["method"], cell["seed"])
            sign = 1 if goal in HIGHER else -1
            best[key] = max(
                best.get(key, (-np.inf, 0.0)), (sign * value["validation"], value["test"])
            )
    found: Found = {}
    for (*key, seed), (_, value) in best.items():
        found.setdefault(tuple(key), {})[seed] = value
    return found


def _gain(gains: np.ndarray) -> str:
    error = gains.std(ddof=len(gains) > 1) / np.sqrt(len(gains))
    sure = "" if abs(gains.mean()) > 2 * error else " ?"
    return f"{gains.mean():+.1f} ± {error:.1f}{sure}"


def _overall(gains: list[tuple[str, np.ndarray]]) -> list[str]:
    """How often the goal's trees are ahead, by size."""
    lines = []
    for size in dict.fromkeys(size for size, _ in gains):
        means = [gain.mean() for other, gain in gains if other == size]
        ahead, behind = sum(m > 0 for m in means), sum(m < 0 for m in means)
        lines.append(
            f"- {size}: ahead in {ahead} and behind in {behind} of {len(means)} rows, "
            f"mean gain {np.mean(means):+.2f} points."
        )
    return lines
