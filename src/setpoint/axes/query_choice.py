"""The true value of a problem per query: thresholds of each query, and the mean over queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.axes.arrays import Floats, quiet, rounded_like, to_numpy
from setpoint.axes.choice import Choice, Infeasible, area, worst
from setpoint.axes.cuts import Cuts, counts_at
from setpoint.axes.sample import Masks, read_masks
from setpoint.axes.scan import TOLERANCE, Placement, holds, place
from setpoint.axes.segments import Grouped, QueryCuts, Segments, queries_among, query_column
from setpoint.axes.specification import Specification
from setpoint.rates import Bound, Tables


def evaluate_queries(
    problem: Specification,
    scores: Any,
    labels: Any,
    thresholds: Any,
    weights: Any,
    groups: Any,
    queries: Any,
) -> float:
    """The mean of the objective over all queries on which it is defined.

    A query on which the objective is 0/0 whatever the threshold (recall where nothing is relevant)
    is left out; where it is 0/0 only at the chosen threshold, it counts as the worst value.
    """
    if thresholds is None and problem.swept is None:
        return choose_queries(problem, scores, labels, weights, groups, queries).value
    s, masks = read_masks(problem.slices, scores, labels, weights, groups)
    grouped = _grouped(problem, queries, groups, s)
    given = None if thresholds is None else _given(problem, thresholds, grouped)
    values = []
    with quiet():
        for part, own, mine in _parts(s, masks, grouped):
            if given is None:
                values += [_areas(problem, own, mine, grouped, part)]
                continue
            segments = _segments(grouped, part)
            tables = _decided(own, mine, segments, given[part])
            values += [_objectives(problem, tables, _cuts(own, mine, segments))]
    return _mean_of(problem, np.concatenate(values))


def choose_queries(
    problem: Specification, scores: Any, labels: Any, weights: Any, groups: Any, queries: Any
) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`; thresholds are ``{query: threshold}``."""
    s, masks = read_masks(problem.slices, scores, labels, weights, groups)
    grouped = _grouped(problem, queries, groups, s)
    targets, thresholds, values = holds(problem), [], []
    reached: list[list[Floats]] = [[] for _ in problem.subject_to]
    with quiet():
        for part, own, mine in _parts(s, masks, grouped):
            cuts = _cuts(own, mine, _segments(grouped, part))
            placed = place(cuts, problem, targets)
            tables = cuts.tables_at(placed.cut)
            _check_feasible(problem, placed, tables, grouped.names[part])
            thresholds.append(_representable(placed, cuts, scores))
            values.append(_objectives(problem, tables, cuts))
            for found, target in zip(reached, problem.subject_to, strict=True):
                found.append(np.mean(target.expression.of(tables), -1))
    value = _mean_of(problem, np.concatenate(values))
    rates = {str(problem.objective): value}
    for found, target in zip(reached, problem.subject_to, strict=True):
        rates.setdefault(str(target.expression), float(np.nanmean(np.concatenate(found))))
    rows = np.concatenate(thresholds).tolist()
    chosen = [row[0] if len(row) == 1 else tuple(row) for row in rows]
    return Choice(dict(zip(grouped.names.tolist(), chosen, strict=True)), value, rates)


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


def _areas(
    problem: Specification, s: Floats, masks: Masks, grouped: Grouped, part: slice
) -> Floats:
    """The exact area of every query, one after the other."""
    starts = grouped.starts[part.start : part.stop + 1] - grouped.starts[part.start]
    found = []
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = {w: (p[None, first:end], n[None, first:end]) for w, (p, n) in masks.items()}
        found.append(area(problem, Cuts.sort(s[None, first:end], rows)))
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


def _grouped(problem: Specification, queries: Any, groups: Any, s: Floats) -> Grouped:
    queries = queries_among(problem.query, queries, groups)
    return Grouped.by(query_column(problem.query, queries, s))


def _parts(s: Floats, masks: Masks, grouped: Grouped) -> Iterator[tuple[slice, Floats, Masks]]:
    """Some queries at a time, with their scores and class weights."""
    for part in grouped.parts():
        rows = grouped.rows(part)
        yield part, s[rows], {where: (p[rows], n[rows]) for where, (p, n) in masks.items()}


def _segments(grouped: Grouped, part: slice) -> Segments:
    return Segments.of(grouped.ids(part), part.stop - part.start)


def _cuts(s: Floats, masks: Masks, segments: Segments) -> QueryCuts:
    return QueryCuts.sort(s, segments, masks)


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
