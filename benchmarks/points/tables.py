"""From rows to tables: paired differences, ranks, and the cells that are lost."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.points.methods import BASELINES, RANKED

Row = dict[str, Any]
KEY = ("data", "model", "optimizer", "batch", "zero_head", "goal")
"""A cell of the tables: everything but the seed and the method."""


def cells(rows: Iterable[Row]) -> dict[tuple[Any, ...], dict[int, dict[str, Row]]]:
    """By cell, seed and method."""
    found: dict[tuple[Any, ...], dict[int, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[tuple(row[k] for k in KEY)][row["seed"]][row["method"]] = row
    return found


def best_baseline(methods: dict[str, Row]) -> Row:
    """What a careful user would have kept: the baseline with the best validation metric."""
    return max((methods[b] for b in BASELINES if b in methods), key=lambda row: row["validation"])


def portfolio(methods: dict[str, Row], members: tuple[str, ...]) -> Row:
    """The member with the best validation metric."""
    return max((methods[m] for m in members if m in methods), key=lambda row: row["validation"])


def difference(seeds: dict[int, dict[str, Row]], method: str) -> tuple[float, float, int]:
    """``method`` minus the best baseline picked on validation: mean, standard error, seeds."""
    d = [
        methods[method]["test"] - best_baseline(methods)["test"]
        for methods in seeds.values()
        if method in methods and any(b in methods for b in BASELINES)
    ]
    if not d:
        return float("nan"), float("nan"), 0
    error = np.std(d, ddof=1) / len(d) ** 0.5 if len(d) > 1 else float("nan")
    return float(np.mean(d)), float(error), len(d)


def paired(
    found: dict[tuple[Any, ...], dict[int, dict[str, Row]]], one: str, other: str
) -> tuple[float, float, int]:
    """``one`` minus ``other`` over all seeds and cells that have both: mean, error, pairs."""
    d = [
        methods[one]["test"] - methods[other]["test"]
        for seeds in found.values()
        for methods in seeds.values()
        if one in methods and other in methods
    ]
    error = np.std(d, ddof=1) / len(d) ** 0.5 if len(d) > 1 else float("nan")
    return float(np.mean(d)) if d else float("nan"), float(error), len(d)


def mean_ranks(found: dict[tuple[Any, ...], dict[int, dict[str, Row]]]) -> dict[str, float]:
    """The mean over cells of each method's rank by its mean over seeds; ties share a rank."""
    ranks: dict[str, list[float]] = defaultdict(list)
    for seeds in found.values():
        common = set(RANKED).intersection(*(set(methods) for methods in seeds.values()))
        means = {m: np.mean([methods[m]["test"] for methods in seeds.values()]) for m in common}
        for m, value in means.items():
            above = sum(other > value for other in means.values())
            same = sum(other == value for other in means.values())
            ranks[m].append(above + (same + 1) / 2)
    return {m: float(np.mean(r)) for m, r in sorted(ranks.items(), key=lambda i: np.mean(i[1]))}


def lost(
    found: dict[tuple[Any, ...], dict[int, dict[str, Row]]], method: str = "default"
) -> list[tuple[tuple[Any, ...], float, float]]:
    """The cells in which ``method`` is behind by more than two standard errors."""
    bad = []
    for key, seeds in found.items():
        mean, error, count = difference(seeds, method)
        if count > 1 and mean < -2 * error and mean < 0:
            bad.append((key, mean, error))
    return bad
