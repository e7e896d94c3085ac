"""The tables in words, as Markdown."""

from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.points.beside import Row, by_class, by_limit, steps_to_it, tried, variants
from benchmarks.points.goals import GOALS, TITLES
from benchmarks.points.methods import RANKED
from benchmarks.points.tables import cells, difference, lost, mean_ranks

SCREENING = 100  # seeds from here on are of the screening stages
TRYING = 180  # and from here on of ideas


def text(rows: list[Row]) -> str:
    """All tables of these rows."""
    final = [row for row in rows if row["seed"] < SCREENING]
    screened = [row for row in rows if SCREENING <= row["seed"] < TRYING]
    ideas = [row for row in rows if row["seed"] >= TRYING]
    parts = [_table(name, mine) for name, mine in by_class(final).items()]
    if final:
        parts = [
            "\n".join(f"- `{g}`: {TITLES[g]}" for g in GOALS),
            *parts,
            _lost(final),
            by_limit(final),
        ]
    if screened:
        parts.append(variants(screened))
    if ideas:
        parts.append(tried(ideas))
    return "\n\n".join(parts) or "No rows yet."


def _table(name: str, rows: list[Row]) -> str:
    found = {  # means and ranks of all methods over the same cells
        key: seeds
        for key, seeds in cells(rows).items()
        if any("default" in methods for methods in seeds.values())
    }
    if not found:
        return f"## {name}\n\nThe default has no rows yet."
    goals = [g for g in GOALS if any(key[-1] == g for key in found)]
    ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in mean_ranks(found).items())
    lines = [
        f"## {name}",
        "",
        f"Mean rank over {len(found)} cells: {ranks}.",
        "",
        *steps_to_it(found),
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


def _entry(seeds: Any) -> str:
    mean, error, count = difference(seeds, "default") if seeds else (0.0, 0.0, 0)
    if not count:
        return ""
    return f"{mean:+.1f} ({error:.1f}, {count})" if count > 1 else f"{mean:+.1f} (1)"


def _means(found: Any, goals: list[str]) -> str:
    """The mean of every method over data sets and seeds, goal by goal; those run everywhere."""
    lines = ["| points | " + " | ".join(goals) + " |", "|---" * (len(goals) + 1) + "|"]
    for method in RANKED:
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
    """Cells that are behind, and how many chance alone would show."""
    found = cells(rows)
    bad = lost(found)
    counts = [difference(seeds, "default")[2] for seeds in found.values()]
    several = [count for count in counts if count > 1]
    chance = sum(float(student.cdf(-2, count - 1)) for count in several)
    lines = [
        f"{len(bad)} of {len(several)} cells with several seeds are behind the best baseline "
        "picked on validation by more than two standard errors; with so few seeds chance alone "
        f"would show {chance:.1f} if the default were level in every cell:",
        "",
    ]
    for key, mean, error in bad:
        lines.append(f"- {' '.join(map(str, key))}: {mean:+.2f} ({error:.2f})")
    return "\n".join(lines)
