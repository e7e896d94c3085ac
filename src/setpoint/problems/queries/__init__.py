"""Problems asked of every query: ragged stretches of documents, thresholds of their own, means."""

from setpoint.problems.queries.cuts import QueryCuts
from setpoint.problems.queries.evaluate import choose_queries, evaluate_queries
from setpoint.problems.queries.grouping import (
    CHUNK,
    Grouped,
    queries_among,
    query_column,
)
from setpoint.problems.queries.segments import Segments

__all__ = [
    "CHUNK",
    "Grouped",
    "QueryCuts",
    "Segments",
    "choose_queries",
    "evaluate_queries",
    "queries_among",
    "query_column",
]
