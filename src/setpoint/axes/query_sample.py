"""The examples of whole queries: a checked sample, cut into parts that fit a processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.sample import Sample
from setpoint.axes.segments import (
    EXAMPLES_AT_ONCE,
    Grouped,
    QueryCuts,
    Segments,
    queries_among,
    query_column,
)
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import Array, Where

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
