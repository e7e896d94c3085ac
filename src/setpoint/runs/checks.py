"""Whether the parts of a file hold enough to learn from, and to judge by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from setpoint.problems import Problem
from setpoint.tables import TableError, need_column, open_table
from setpoint.tables.errors import listed, quoted

LEAST = 10  # rows of each of two classes in each part, below which nothing can be learned or said
LEAST_OF_SEVERAL = 3  # rows of each of several classes; what is said of so few is said with them


def check_columns(file: Path, label: str, group: str | None, test: Path | None) -> None:
    """Told before any row is read: files that are not there, and columns that they lack."""
    for path in (file, test):
        if path is not None:
            source = open_table(path)
            need_column(source, label, "--label")
            if group is not None:
                need_column(source, group, "--group")


def check_both(file: Path, part: str, labels: Any) -> None:
    """Both classes must be there."""
    positives = int(labels.sum())
    few = min(positives, len(labels) - positives)
    if few < LEAST:
        rare = "positives" if positives == few else "negatives"
        problem = f"too few rows: the {part} part has {few} {rare}, and {LEAST} is the least"
        raise TableError(file, f"{problem} that anything can be said about.")


def check_several(file: Path, column: str, part: str, labels: Any, names: tuple[str, ...]) -> None:
    """Every class must be there."""
    counts = np.bincount(labels, minlength=len(names))
    rare = int(np.argmin(counts))
    if counts[rare] < LEAST_OF_SEVERAL:
        problem = f"too few rows: the {part} part has {counts[rare]} of {quoted(names[rare])}, and "
        problem += f"{LEAST_OF_SEVERAL} is the least. Join rare classes, or remove their rows."
        raise TableError(file, problem, column=column)


def check_groups(file: Path, problem: Problem, column: str | None, part: str, groups: Any) -> None:
    """Every group that the goal names must be there."""
    asked = {value for where in problem.slices for _, value in where}
    there = set() if groups is None else set(groups.tolist())
    for value in asked - there:
        wrong = f"the goal asks about {quoted(value)}, which the {part} part does not have; "
        wrong += f"it has {listed(sorted(there))}."
        raise TableError(file, wrong, column=column)
