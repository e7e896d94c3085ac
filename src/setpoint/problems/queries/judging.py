"""What each query is worth at its thresholds, which can be judged at all, and their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.problems.areas import area, worst
from setpoint.problems.choice import Infeasible
from setpoint.problems.cuts import Cuts
from setpoint.problems.holds import TOLERANCE
from setpoint.problems.inputs import Floats, Masks
from setpoint.problems.problem import Problem
from setpoint.problems.queries.cuts import QueryCuts
from setpoint.problems.queries.grouping import Grouped
from setpoint.problems.scan import Placement
from setpoint.rates import Bound, Tables


def objectives(problem: Problem, tables: Tables, cuts: QueryCuts) -> Floats:
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


def areas(problem: Problem, s: Floats, masks: Masks, grouped: Grouped, part: slice) -> Floats:
    """The exact area of every query, one after the other."""
    starts = grouped.starts[part.start : part.stop + 1] - grouped.starts[part.start]
    found = []
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = {w: (p[None, first:end], n[None, first:end]) for w, (p, n) in masks.items()}
        found.append(area(problem, Cuts.sort(np, s[None, first:end], rows)))
    return np.asarray(found)


def mean_of(problem: Problem, values: Floats) -> float:
    """The mean over the queries that can be judged."""
    judged = values[~np.isnan(values)]
    if not len(judged):
        raise ValueError(
            f"`{problem}` is undefined on these data: a rate of it is 0/0 in every {problem.query} "
            f"({len(values):,} in all). Pass some with examples of every kind it counts."
        )
    return float(judged.mean())


def check_feasible(problem: Problem, placed: Placement, tables: Tables, names: Any) -> None:
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
