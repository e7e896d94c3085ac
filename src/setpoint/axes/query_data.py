"""Examples of queries as segments of flat arrays, end to end: sums and extremes without a loop.

Queries have different numbers of examples. Laid end to end they need no padding: a reduction over
each segment takes one pass over all of them. The cuts of all queries lie end to end, too: ``n + q``
of them for ``n`` examples in ``q`` queries. Whole queries are taken some at a time, as many as fit
a processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import as_array
from setpoint.axes.cuts import Cuts, counts_at
from setpoint.axes.sample import Sample
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples, as_column, check_length
from setpoint.rates import Array, Tables, Where


@dataclass(frozen=True)
class Segments:
    """``q`` segments of an array of length ``n``."""

    ids: Array  # [n] which segment an entry is in: 0, 0, ..., 1, 1, ...
    starts: Array  # [q]
    lengths: Array  # [q]

    @classmethod
    def of(cls, ids: Array, count: int) -> Segments:
        """The segments of equal ``ids``, which rise from 0 to less than ``count``."""
        lengths = np.bincount(ids, minlength=count)
        return cls(ids, np.cumsum(lengths) - lengths, lengths)

    def total(self, values: Array) -> Array:
        """The sum over each segment, ``[..., n]`` to ``[..., q]``."""
        return np.add.reduceat(values, self.starts, axis=-1)

    def extreme(self, reduce: np.ufunc, values: Array) -> Array:
        """``np.minimum`` or ``np.maximum`` over each segment."""
        return reduce.reduceat(values, self.starts, axis=-1)

    def each(self, values: Array) -> Array:
        """The value of its segment for every entry, ``[..., q]`` to ``[..., n]``."""
        return np.repeat(values, self.lengths, axis=-1)

    def running(self, values: Array) -> Array:
        """The sum within the segment up to and including every entry, ``[n]``."""
        sums = np.cumsum(values, -1)
        return sums - self.each((sums - values)[self.starts])

    def positions(self) -> Array:
        """The place of every entry in its segment: 0, 1, 2, ..., ``[n]``."""
        return np.arange(len(self.ids)) - self.each(self.starts)

    def at(self, values: Array, place: Array) -> Array:
        """``values`` [n] at the ``place`` [q, m] within each segment."""
        return values.take(self.starts[:, None] + place, mode="clip")

    def longer(self) -> Segments:
        """Every segment with one more entry in front."""
        more = np.arange(len(self.starts))
        return Segments(self.fronted(self.ids, more), self.starts + more, self.lengths + 1)

    def fronted(self, values: Array, front: Array) -> Array:
        """``values`` [n] with ``front`` [q] put before each segment."""
        return np.insert(values, self.starts, front)


EXAMPLES_AT_ONCE = 2**16
"""Examples taken at once, in whole queries: what fits into a processor's cache."""


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

    def parts(self, size: int = EXAMPLES_AT_ONCE) -> Iterator[slice]:
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
    column = as_array(queries, "queries")
    column = as_column(column)
    check_length(column, scores, "queries")
    if column.dtype.kind == "O":
        column = np.asarray([_query_value(value, row) for row, value in enumerate(column.tolist())])
    if column.dtype.kind == "f" and np.isnan(column).any():
        row = int(np.isnan(column).argmax())
        raise ValueError(f"Every example belongs to a query; got NaN in row {row} of queries.")
    return column


def _query_value(value: Any, row: int) -> Any:
    if value is None or value != value:
        raise ValueError(f"Every example belongs to a query; got {value!r} in row {row}.")
    return value


@dataclass(frozen=True)
class QueryCuts:
    """Counts at every cut of the sorted scores of every query, as :class:`setpoint.axes.cuts.Cuts`.

    What belongs to a threshold is ``[q, m]``, as it is ``[c, m]`` there: the same scan chooses.
    """

    scores: Array  # [n] from high to low in each query; examples of weight zero last, as -inf
    weights: Array  # [n] in the same order
    examples: Segments
    cuts: Segments
    present: Array  # [q] how many are there
    accepted: Mapping[Where, tuple[Array, Array]]  # positives and negatives, [n + q]
    _positions: list[Array] = field(default_factory=list)  # once found

    @classmethod
    def sort(
        cls, scores: Array, queries: Segments, masks: Mapping[Where, tuple[Array, Array]]
    ) -> QueryCuts:
        """Sort ``scores`` [n] within ``queries``, and add up both classes in every slice."""
        everyone = masks[()][0] + masks[()][1]
        keys = np.where(everyone > 0, scores, -np.inf)
        order = _order(keys, queries)
        none = queries.starts * 0.0

        def accepted(weights: Array) -> Array:
            return queries.fronted(queries.running(weights[order]), none)

        return cls(
            keys[order],
            everyone[order],
            queries,
            queries.longer(),
            queries.total((everyone > 0) * 1),
            {where: (accepted(p), accepted(n)) for where, (p, n) in masks.items()},
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of counts at every cut: outputs, thresholds, cuts."""
        return (1, 1, len(self.cuts.ids))

    def tables(self) -> Tables:
        """The counts at all cuts, ``[1, 1, n + q]``."""
        tables = {}
        for where, both in self.accepted.items():
            totals = (self.cuts.each(self._last(x)) for x in both)
            tables[where] = counts_at(*(x[None, None] for x in (*both, *totals)))
        return tables

    def tables_at(self, cut: Array) -> Tables:
        """The counts at one cut for each threshold, ``[q, m]``."""
        return {
            where: counts_at(
                *(self.cuts.at(x, cut) for x in both), *(self._last(x)[:, None] for x in both)
            )
            for where, both in self.accepted.items()
        }

    def valid(self) -> Array:
        """Which cuts split no equal scores, ``[1, 1, n + q]``."""
        s, queries = self.scores, self.examples
        ids, end = queries.ids, s[queries.starts] > -np.inf
        last = np.append(ids[:-1] != ids[1:], True)
        inside = np.append(s[:-1] > s[1:], True)
        inside = np.where(last, queries.each(end), inside)
        return queries.fronted(inside, end)[None, None]

    def score(self, rank: Array) -> Array:
        """The score of the given rank (0: the highest), clamped to those that are there."""
        rank = np.minimum(rank, self.present[:, None] - 1)
        return self.examples.at(self.scores, rank * (rank > 0))

    def above(self, values: Array, *, equal: bool = False) -> Array:
        """How many scores of each query are above ``values`` [q, m] (or equal), by bisection."""
        low = (values != values) * 0
        high = low + self.examples.lengths[:, None]
        longest = int(self.examples.lengths.max())
        for _ in range(longest.bit_length()):
            middle = (low + high) // 2
            here = self.examples.at(self.scores, middle)
            more = (low < high) & ((here >= values) if equal else (here > values))
            low, high = np.where(more, middle + 1, low), np.where(more, high, middle)
        return low

    def over(self, reduce: np.ufunc, values: Array) -> Array:
        """``np.minimum`` or ``np.maximum`` over the cuts of each query, ``[q, m]``."""
        return self.cuts.extreme(reduce, values[0]).T

    def along(self, values: Array) -> Array:
        """What belongs to thresholds ``[q, m]``, at every cut: ``[1, m, n + q]``."""
        return self.cuts.each(values.T)[None]

    def positions(self) -> Array:
        """How many examples every cut accepts, ``[n + q]``."""
        if not self._positions:
            self._positions.append(self.cuts.positions())
        return self._positions[0]

    def _last(self, accepted: Array) -> Array:
        """What is accepted at the last cut, ``[q]``: everyone."""
        return self.cuts.at(accepted, self.examples.lengths[:, None])[:, 0]


SHORT = 2**16
"""So many queries are sorted by a radix sort: numpy has one for 16 bits."""


def _order(keys: Array, queries: Segments) -> Array:
    """By query, and from high to low within each."""
    order = np.argsort(-keys)
    ids = queries.ids[order]
    if len(queries.starts) <= SHORT:
        ids = ids.astype(np.uint16)
    return order[np.argsort(ids, kind="stable")]


AnyCuts = Cuts | QueryCuts
"""What a scan reads: counts at every cut, of outputs or of queries."""


Rows = slice | NDArray[np.int64]


class QuerySample(Sample):
    """Documents in the order of their queries: scores ``[n]``, columns ``[n, k]``."""

    def __init__(
        self, scores: Array, columns: Array, slices: tuple[Where, ...], *, queries: Segments
    ) -> None:
        self.queries = queries
        self.by_column = np.ascontiguousarray(columns.T)  # each column in one piece, [k, n]
        super().__init__(scores, columns, slices, totals=queries.total(self.by_column).T)

    @cached_property
    def query_cuts(self) -> QueryCuts:
        """The sorted scores of every query with the counts at every cut."""
        by = self.by_column
        pairs = {where: (by[2 * i], by[2 * i + 1]) for i, where in enumerate(self.slices)}
        return QueryCuts.sort(self.scores, self.queries, pairs)


@dataclass(frozen=True)
class QueryBatch:
    """A sample of one output, and the order of its examples by query."""

    sample: Sample
    grouped: Grouped
    examples: ScoredExamples  # as they were handed in, with the column of queries
    size: int = EXAMPLES_AT_ONCE  # documents to take at once

    @classmethod
    def of(
        cls, problem: Specification, sample: Sample, examples: ScoredExamples, size: int
    ) -> QueryBatch:
        """A checked sample in the order of its queries, to be taken ``size`` at a time."""
        queries = queries_among(problem.query, examples.queries, examples.groups)
        grouped = Grouped.by(query_column(problem.query, queries, sample.scores[0]))
        return cls(sample, grouped, examples._replace(queries=queries), size)

    def parts(self) -> Iterator[tuple[slice, Rows, QuerySample]]:
        """Some whole queries at a time: which ones, their rows, and the sample they make."""
        for part in self.grouped.parts(self.size):
            rows = self.grouped.rows(part)
            queries = Segments.of(self.grouped.ids(part), part.stop - part.start)
            scores, columns = self.sample.scores[0, rows], self.sample.columns[0, rows]
            yield part, rows, QuerySample(scores, columns, self.sample.slices, queries=queries)
