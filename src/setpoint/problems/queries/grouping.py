"""Which examples belong to which query, and whole queries some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_length

CHUNK = 2**16
"""Examples taken at once, in whole queries: what a processor's cache holds, and a bounded memory
however many queries there are."""


@dataclass(frozen=True)
class Grouped:
    """Examples in the order of their queries."""

    names: NDArray[Any]  # [q] the distinct values
    starts: NDArray[np.int64]  # [q + 1] where each begins; the last is the number of examples
    order: NDArray[np.int64] | None  # [n] the example at every place; None if they are in order

    @classmethod
    def by(cls, column: NDArray[Any]) -> Grouped:
        """The examples with equal values of ``column`` [n] together; a query keeps its order."""
        order = None
        if not np.all(column[1:] >= column[:-1]):
            order = np.argsort(column, kind="stable")
            column = column[order]
        new = np.flatnonzero(column[1:] != column[:-1]) + 1
        firsts = np.concatenate([[0], new]).astype(np.int64)
        return cls(column[firsts], np.append(firsts, len(column)), order)

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self.names)

    def ids(self, part: slice) -> NDArray[np.int64]:
        """The query of each example of some queries, counted from 0."""
        lengths = np.diff(self.starts[part.start : part.stop + 1])
        return np.repeat(np.arange(len(lengths)), lengths)

    def rows(self, part: slice) -> slice | NDArray[np.int64]:
        """The examples of some queries."""
        span = slice(int(self.starts[part.start]), int(self.starts[part.stop]))
        return span if self.order is None else self.order[span]

    def parts(self, size: int = CHUNK) -> Iterator[slice]:
        """Queries some at a time, about ``size`` examples each."""
        first, last = 0, len(self)
        while first < last:
            end = int(np.searchsorted(self.starts, self.starts[first] + size, "right")) - 1
            end = min(max(end, first + 1), last)
            yield slice(first, end)
            first = end


def queries_among(name: str | None, queries: Any, groups: Any) -> Any:
    """The column of queries: as given, or the one of this name among the group columns."""
    if queries is None and isinstance(groups, Mapping) and name in groups:
        return groups[name]
    if isinstance(queries, Mapping):
        if name not in queries:
            known = ", ".join(map(str, queries)) or "none"
            raise ValueError(f'The problem needs the column "{name}"; queries has: {known}.')
        return queries[name]
    return queries


def query_column(name: str | None, queries: Any, scores: NDArray[Any]) -> NDArray[Any]:
    """The query of each example, checked: numbers or strings, none missing."""
    if name is None:
        raise ValueError(
            "queries= was given, and the problem is not asked of queries: write "
            'problem.per("query"), or leave queries= out.'
        )
    if queries is None:
        raise ValueError(f"The problem is per {name}: pass queries=, the {name} of each example.")
    column = np.asarray(queries.detach().cpu() if hasattr(queries, "detach") else queries)
    column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column
    check_length(column, scores, "queries")
    if column.dtype.kind == "O":
        column = np.asarray([_named(value, row) for row, value in enumerate(column.tolist())])
    if column.dtype.kind == "f" and np.isnan(column).any():
        row = int(np.isnan(column).argmax())
        raise ValueError(f"Every example belongs to a query; got NaN in row {row} of queries.")
    return column


def _named(value: Any, row: int) -> Any:
    if value is None or value != value:
        raise ValueError(f"Every example belongs to a query; got {value!r} in row {row}.")
    return value
