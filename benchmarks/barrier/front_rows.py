"""Rows of a benchmark: appended to a file of JSON lines as they are made, printed as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from benchmarks.common import results

RESULTS = results.RESULTS


class Rows:
    """A file of JSON lines; a row that is in it already need not be made again."""

    def __init__(self, name: str, *, fresh: bool) -> None:
        """``fresh`` throws earlier rows away."""
        self.path = RESULTS / f"{name}.jsonl"
        RESULTS.mkdir(exist_ok=True)
        if fresh:
            self.path.unlink(missing_ok=True)
        self.rows = results.read(self.path)

    def find(self, **key: Any) -> dict[str, Any] | None:
        """The first row with these values."""
        matches = (row for row in self.rows if all(row.get(k) == v for k, v in key.items()))
        return next(matches, None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one more row."""
        results.append(self.path, row)
        self.rows.append(dict(row))


def spread(values: Iterable[float]) -> str:
    """``0.31 ± 0.02``: mean and standard deviation over the seeds."""
    found = list(values)
    if not found:
        return "-"
    return f"{fmean(found):.4g}" + (f" ± {stdev(found):.2g}" if len(found) > 1 else "")


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
