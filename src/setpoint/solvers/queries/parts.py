"""Whole queries of a batch, some at a time: the rows they are in, and where each begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.segments import CHUNK, Grouped, Segments, query_column
from setpoint.batch import check_scores
from setpoint.rates import Where
from setpoint.solvers.queries.reading import QuerySample
from setpoint.thresholds import in_numpy, read

Rows = Any  # a slice, or indices


def whole_queries(
    name: str | None, queries: Any, scores: Tensor, points: int
) -> Iterator[tuple[Rows, Segments]]:
    """The rows of some queries, in their order, and the stretches they make.

    Under a compiler, whose shapes are fixed, it is the whole batch, with room for as many queries
    as there are documents.
    """
    if torch.compiler.is_compiling():
        queries = torch.as_tensor(queries, device=scores.device).reshape(-1)
        order = torch.argsort(queries, stable=True)
        column = queries[order]
        new = torch.cat([column[:1] != column[:1], column[1:] != column[:-1]])
        yield order, Segments.of(torch, torch.cumsum(new.long(), 0), len(column))
        return
    column = query_column(name, queries, np.empty(len(scores), dtype=bool))
    grouped = Grouped.by(column)
    for part in grouped.parts(max(1, CHUNK // points)):
        rows, ids, count = grouped.rows(part), grouped.ids(part), part.stop - part.start
        if in_numpy(scores):
            yield rows, Segments.of(np, ids, count)
        else:
            on_device = torch.as_tensor(ids, device=scores.device)
            yield rows, Segments.of(torch, on_device, count)


def one_score_each(scores: Tensor) -> Tensor:
    """One finite score a document, ``[n]``, without a gradient."""
    if scores.ndim not in (1, 2) or (scores.ndim == 2 and scores.shape[1] != 1):
        raise ValueError(
            "Queries take one score a document, [n] or [n, 1]; "
            f"got the shape {tuple(scores.shape)}."
        )
    flat = scores.detach().reshape(-1)
    if not torch.compiler.is_compiling():
        check_scores(flat)
    return flat


def read_rows(
    slices: tuple[Where, ...], rows: Rows, queries: Segments, scores: Tensor, given: dict[str, Any]
) -> QuerySample:
    """The checked documents of some queries; ``scores`` are ``[n]``."""
    weights = given["weights"]
    sample = read(
        slices,
        scores[rows],
        _of(given["labels"], rows),
        None if weights is None else _of(weights, rows),
        _of(given["groups"], rows),
    )
    return QuerySample(sample.scores[0], sample.columns[0], queries=queries)


def _of(values: Any, rows: Rows) -> Any:
    """The values of some rows, of a column or of several by name."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: _of(column, rows) for name, column in values.items()}
    return values[rows] if isinstance(values, Tensor) else np.asarray(values)[rows]
