"""Choose thresholds and evaluate problems on true counts, whoever shares a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.axes.arrays import Floats, quiet, to_numpy
from setpoint.axes.choice import (
    Choice,
    area,
    check_feasible,
    defined,
    objective_value,
    rates_reached,
    representable,
    tables_at,
)
from setpoint.axes.class_choice import choose_classes, evaluate_classes
from setpoint.axes.cuts import Cuts
from setpoint.axes.group_cells import threshold_column
from setpoint.axes.group_search import choose_groups
from setpoint.axes.query_choice import choose_queries, evaluate_queries
from setpoint.axes.sample import Masks, read_masks
from setpoint.axes.scan import place
from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.rates import Counts


def evaluate_problem(
    problem: Specification,
    scores: Any,
    labels: Any,
    thresholds: Any,
    weights: Any,
    groups: Any,
    queries: Any = None,
    classes: Any = None,
) -> float:
    """See :meth:`setpoint.problems.Problem.evaluate`."""
    if problem.kind == "classes":
        return evaluate_classes(problem, scores, labels, thresholds, weights, groups, classes)
    if problem.kind == "queries" or queries is not None:
        return evaluate_queries(problem, scores, labels, thresholds, weights, groups, queries)
    if thresholds is None and problem.swept is None:
        return choose_thresholds(problem, scores, labels, weights, groups).value
    s, masks = read_masks(problem.slices, scores, labels, weights, groups)
    with quiet():
        if thresholds is None:
            value = area(problem, Cuts.sort(s[None], _rows(masks)))
            return defined(problem, value, masks)
        tables = tables_at(s, _column(problem, thresholds, groups, s), masks)
        return objective_value(problem, tables, s, masks)


def choose_thresholds(
    problem: Specification,
    scores: Any,
    labels: Any,
    weights: Any,
    groups: Any,
    queries: Any = None,
    classes: Any = None,
) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`."""
    if problem.kind == "classes":
        return choose_classes(problem, scores, labels, weights, groups, classes)
    if problem.kind == "queries" or queries is not None:
        return choose_queries(problem, scores, labels, weights, groups, queries)
    if problem.kind == "groups":
        return choose_groups(problem, scores, labels, weights, groups)
    s, masks = read_masks(problem.slices, scores, labels, weights, groups)
    with quiet():
        cuts = Cuts.sort(s[None], _rows(masks))
        placed = place(cuts, problem)
        tables = {where: _row(table) for where, table in cuts.tables_at(placed.cut).items()}
        check_feasible(problem, tables, masks)
        value = objective_value(problem, tables, s, masks)
        rates = rates_reached(problem, value, tables)
        if problem.swept is not None:
            value = defined(problem, area(problem, cuts), masks)
    thresholds = tuple(representable(t, scores, s) for t in placed.threshold[0].tolist())
    return Choice(thresholds, value, rates)


def _rows(masks: Masks) -> Masks:
    return {where: (p[None], n[None]) for where, (p, n) in masks.items()}


def _row(t: Counts) -> Counts:
    return Counts(*(x[0] for x in (t.tp, t.fp, t.fn, t.tn, t.positives, t.negatives)))


def _column(problem: Specification, thresholds: Any, groups: Any, s: Floats) -> Floats:
    """The threshold of every example for each of the m thresholds: ``[m, 1]`` or ``[1, n]``."""
    if problem.thresholds == PER_GROUP:
        t = threshold_column(problem, thresholds, groups, s)[None]
        shape: tuple[int, ...] = (1, len(s))
    else:
        t = np.atleast_1d(to_numpy(thresholds, "thresholds"))[:, None]
        shape = (len(problem.points), 1)
    if t.shape != shape or np.isnan(t).any():
        count = plural(len(problem.points), "threshold")
        raise ValueError(f"This problem takes {count}, none of them NaN; got {thresholds!r:.60}.")
    return t
