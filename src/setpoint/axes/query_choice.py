"""The true value of a problem per query: thresholds of each query, and the mean over queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.axes.areas import area
from setpoint.axes.arrays import Floats, quiet, rounded_like, to_numpy
from setpoint.axes.choice import Choice, Infeasible, worst
from setpoint.axes.cuts import tables_of
from setpoint.axes.query_data import (
    EXAMPLES_AT_ONCE,
    Grouped,
    QueryBatch,
    QueryCuts,
    QuerySample,
)
from setpoint.axes.sample import Sample, read_to_evaluate
from setpoint.axes.scan import TOLERANCE, Placement, holds, place
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import Bound, Tables


def evaluate_queries(problem: Specification, examples: ScoredExamples, thresholds: Any) -> float:
    """The mean of the objective over all queries on which it is defined.

    A query on which the objective is 0/0 whatever the threshold (recall where nothing is relevant)
    is left out; where it is 0/0 only at the chosen threshold, it counts as the worst value.
    """
    if thresholds is None and problem.swept is None:
        return choose_queries(problem, examples).value
    batch = _read_batch(problem, examples)
    given = None if thresholds is None else _given(problem, thresholds, batch.grouped)
    values = []
    with quiet():
        for part, _, sample in batch.parts():
            if given is None:
                values.append(_areas(problem, sample))
            else:
                tables = _tables_of_queries(sample, given[part])
                values.append(_objectives(problem, tables, sample.query_cuts))
    return _mean_of(problem, np.concatenate(values))


def choose_queries(problem: Specification, examples: ScoredExamples) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`; thresholds are ``{query: threshold}``."""
    batch = _read_batch(problem, examples)
    names, targets = batch.grouped.names, holds(problem)
    thresholds, values = [], []
    reached: list[list[Floats]] = [[] for _ in problem.subject_to]
    with quiet():
        for part, _, sample in batch.parts():
            cuts = sample.query_cuts
            placed = place(cuts, problem, targets)
            tables = cuts.tables_at(placed.cut)
            _check_feasible(problem, placed, tables, names[part])
            thresholds.append(_rounded_thresholds(placed, cuts, examples.scores))
            values.append(_objectives(problem, tables, cuts))
            for found, target in zip(reached, problem.subject_to, strict=True):
                found.append(np.mean(target.expression.of(tables), -1))
    value = _mean_of(problem, np.concatenate(values))
    rates = {str(problem.objective): value}
    for found, target in zip(reached, problem.subject_to, strict=True):
        rates.setdefault(str(target.expression), float(np.nanmean(np.concatenate(found))))
    rows = np.concatenate(thresholds).tolist()
    chosen = [row[0] if len(row) == 1 else tuple(row) for row in rows]
    return Choice(dict(zip(names.tolist(), chosen, strict=True)), value, rates)


def _read_batch(problem: Specification, examples: ScoredExamples) -> QueryBatch:
    sample = read_to_evaluate(problem.slices, examples)
    return QueryBatch.of(problem, sample, examples, EXAMPLES_AT_ONCE)


def _objectives(problem: Specification, tables: Tables, cuts: QueryCuts) -> Floats:
    """The objective of each query; NaN where no threshold has any."""
    values = np.asarray(problem.objective.of(tables))
    values = np.broadcast_to(values, np.broadcast_shapes(values.shape, (len(cuts.present), 1)))
    if np.isnan(values).any():
        none, everyone = np.zeros((len(values), 1), int), cuts.examples.lengths[:, None]
        ends = problem.objective.of(cuts.tables_at(np.concatenate([none, everyone], -1)))
        hopeless = np.isnan(ends).all(-1, keepdims=True)
        values = np.where(np.isnan(values) & ~hopeless, worst(problem), values)
    undefined = [np.isnan(t.expression.of(tables)).any(-1) for t in problem.subject_to]
    lost = np.any(undefined, axis=0) if undefined else False
    return np.where(lost, np.nan, values.mean(-1))


def _areas(problem: Specification, sample: QuerySample) -> Floats:
    """The exact area of every query, one after the other."""
    found = []
    for start, length in zip(sample.queries.starts, sample.queries.lengths, strict=True):
        rows = slice(start, start + length)
        one = Sample(sample.scores[None, rows], sample.columns[None, rows], sample.slices)
        found.append(area(problem, one.cuts))
    return np.asarray(found)


def _mean_of(problem: Specification, values: Floats) -> float:
    """The mean over the queries that can be judged."""
    judged = values[~np.isnan(values)]
    if not len(judged):
        raise ValueError(
            f"`{problem}` is undefined on these data: a rate of it is 0/0 in every {problem.query} "
            f"({len(values):,} in all). Pass some with examples of every kind it counts."
        )
    return float(judged.mean())


def _check_feasible(problem: Specification, placed: Placement, tables: Tables, names: Any) -> None:
    """Bounds must hold in every query that can tell; a setpoint is the nearest rate there is."""
    bounds = [t for point in problem.points for t in point if isinstance(t, Bound)]
    if not bounds:
        return
    told = ~np.any([np.isnan(t.expression.of(tables)).any(-1) for t in problem.subject_to], axis=0)
    missed = told & (placed.violation > TOLERANCE).any(-1)
    if missed.any():
        first, more = names.tolist()[int(missed.argmax())], int(missed.sum()) - 1
        others = f" and in {more:,} others" if more else ""
        raise Infeasible(
            f"No threshold reaches `{' and '.join(map(str, problem.subject_to))}` in "
            f"{problem.query} {first!r}{others}. Loosen the target, or pass more documents."
        )


def _given(problem: Specification, thresholds: Any, grouped: Grouped) -> Floats:
    """The thresholds of each query, ``[q, m]``."""
    if not isinstance(thresholds, Mapping):
        raise TypeError(
            f"This problem has thresholds of its own for every {problem.query}: pass "
            f"{{{problem.query}: threshold}}; got {thresholds!r:.60}."
        )
    names = grouped.names.tolist()
    missing = [name for name in names if name not in thresholds]
    if missing:
        raise ValueError(f"No threshold for {problem.query} {missing[0]!r}; add it to thresholds=.")
    count = len(problem.points)
    given = to_numpy([np.atleast_1d(thresholds[name]) for name in names], "thresholds")
    if given.shape != (len(names), count) or np.isnan(given).any():
        raise ValueError(f"Every {problem.query} takes {plural(count, 'threshold')}, none NaN.")
    return given


def _tables_of_queries(sample: QuerySample, thresholds: Floats) -> Tables:
    """The counts of each query at given thresholds, ``[q, m]``."""
    accepted = sample.scores > sample.queries.each(thresholds.T)
    counts = sample.queries.total(accepted[:, None] * sample.by_column)
    return tables_of(counts.transpose(2, 0, 1), sample.totals, sample.slices)


def _rounded_thresholds(placed: Placement, cuts: QueryCuts, scores: Any) -> Floats:
    """The thresholds in the precision of the scores, deciding the same: see ``choose``."""
    rounded = rounded_like(scores, placed.threshold)
    too_high = (placed.cut > 0) & (rounded >= cuts.score(placed.cut - 1))
    return np.asarray(np.where(too_high, cuts.score(placed.cut), rounded), dtype=np.float64)
