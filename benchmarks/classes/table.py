"""The rows as a table: mean and deviation over seeds, in points."""

from statistics import mean
from typing import Any

from benchmarks.common.tables import mean_and_deviation

LINE = "| {} | {} | {} | {} | {} | {} |"


def table(rows: list[dict[str, Any]]) -> str:
    """One line for each method and way to decide."""
    lines = [
        LINE.format(
            "trained with", "decided by", "balanced error", "worst recall", "seeds", "s a run"
        ),
        LINE.format(*["---"] * 6),
    ]
    for decision in dict.fromkeys(row["decision"] for row in rows):
        for name in dict.fromkeys(row["method"] for row in rows):
            same = [row for row in rows if (row["method"], row["decision"]) == (name, decision)]
            if same:
                cells = [_points(same, column) for column in ("balanced_error", "worst_recall")]
                seconds = f"{mean(row['seconds'] for row in same):.0f}"
                lines.append(LINE.format(name, decision, *cells, len(same), seconds))
    return "\n".join(lines)


def _points(rows: list[dict[str, Any]], column: str) -> str:
    return mean_and_deviation([100 * row[column] for row in rows])
