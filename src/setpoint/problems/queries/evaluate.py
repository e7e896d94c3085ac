"""The true value of a problem asked of every query: the mean over queries, hard counts, numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.problems.choice import Choice, rounded_like
from setpoint.problems.cuts import counts_at, quiet
from setpoint.problems.holds import holds
from setpoint.problems.inputs import Floats, Masks, read, to_numpy
from setpoint.problems.problem import Problem
from setpoint.problems.queries.cuts import QueryCuts
from setpoint.problems.queries.grouping import Grouped, queries_among, query_column
from setpoint.problems.queries.judging import areas, check_feasible, mean_of, objectives
from setpoint.problems.queries.segments import Segments
from setpoint.problems.scan import Placement, place
from setpoint.rates import Tables


def evaluate_queries(
    problem: Problem,
    scores: Any,
    labels: Any,
    thresholds: Any,
    weights: Any,
    groups: Any,
    queries: Any,
) -> float:
    """See :meth:`Problem.evaluate`: the mean over all queries on which the goal is defined.

    A query on which the objective is 0/0 whatever the threshold (recall where nothing is relevant)
    is left out; where it is 0/0 only at the chosen threshold, it counts as the worst value.
    """
    if thresholds is None and problem.swept is None:
        return choose_queries(problem, scores, labels, weights, groups, queries).value
    s, masks = read(problem, scores, labels, weights, groups)
    grouped = _grouped(problem, queries, groups, s)
    given = None if thresholds is None else _given(problem, thresholds, grouped)
    values = []
    with quiet(np):
        for part, own, mine in _parts(s, masks, grouped):
            if given is None:
                values += [areas(problem, own, mine, grouped, part)]
                continue
            segments = _segments(grouped, part)
            tables = _decided(own, mine, segments, given[part])
            values += [objectives(problem, tables, _cuts(own, mine, segments))]
    return mean_of(problem, np.concatenate(values))


def choose_queries(
    problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any, queries: Any
) -> Choice:
    """See :meth:`Problem.choose`; thresholds are ``{query: threshold}``."""
    s, masks = read(problem, scores, labels, weights, groups)
    grouped = _grouped(problem, queries, groups, s)
    targets, thresholds, values = holds(problem), [], []
    reached: list[list[Floats]] = [[] for _ in problem.subject_to]
    with quiet(np):
        for part, own, mine in _parts(s, masks, grouped):
            cuts = _cuts(own, mine, _segments(grouped, part))
            placed = place(cuts, problem, targets)
            tables = cuts.tables_at(placed.cut)
            check_feasible(problem, placed, tables, grouped.names[part])
            thresholds.append(_representable(placed, cuts, scores))
            values.append(objectives(problem, tables, cuts))
            for found, target in zip(reached, problem.subject_to, strict=True):
                found.append(np.mean(target.expression.of(tables), -1))
    value = mean_of(problem, np.concatenate(values))
    rates = {str(problem.objective): value}
    for found, target in zip(reached, problem.subject_to, strict=True):
        rates.setdefault(str(target.expression), float(np.nanmean(np.concatenate(found))))
    rows = np.concatenate(thresholds).tolist()
    chosen = [row[0] if len(row) == 1 else tuple(row) for row in rows]
    return Choice(dict(zip(grouped.names.tolist(), chosen, strict=True)), value, rates)


def _grouped(problem: Problem, queries: Any, groups: Any, s: Floats) -> Grouped:
    queries = queries_among(problem.query, queries, groups)
    return Grouped.by(query_column(problem.query, queries, s))


def _parts(s: Floats, masks: Masks, grouped: Grouped) -> Iterator[tuple[slice, Floats, Masks]]:
    """Some queries at a time, with their scores and class weights."""
    for part in grouped.parts():
        rows = grouped.rows(part)
        yield part, s[rows], {where: (p[rows], n[rows]) for where, (p, n) in masks.items()}


def _segments(grouped: Grouped, part: slice) -> Segments:
    return Segments.of(np, grouped.ids(part), part.stop - part.start)


def _cuts(s: Floats, masks: Masks, segments: Segments) -> QueryCuts:
    return QueryCuts.sort(np, s, segments, masks)


def _given(problem: Problem, thresholds: Any, grouped: Grouped) -> Floats:
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


def _decided(s: Floats, masks: Masks, queries: Segments, thresholds: Floats) -> Tables:
    """The counts of each query at given thresholds, ``[q, m]``."""
    accepted = s > queries.each(thresholds.T)
    tables = {}
    for where, both in masks.items():
        yes = [queries.total(accepted * weights).T for weights in both]
        all_ = [queries.total(weights)[:, None] for weights in both]
        tables[where] = counts_at(*yes, *all_)
    return tables


def _representable(placed: Placement, cuts: QueryCuts, scores: Any) -> Floats:
    """The thresholds in the precision of the scores, deciding the same: see ``choose``."""
    rounded = rounded_like(scores, placed.threshold)
    too_high = (placed.cut > 0) & (rounded >= cuts.score(placed.cut - 1))
    return np.asarray(np.where(too_high, cuts.score(placed.cut), rounded), dtype=np.float64)
