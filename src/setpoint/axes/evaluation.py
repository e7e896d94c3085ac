"""Choose thresholds and evaluate problems on true counts, whoever shares a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.axes.areas import area
from setpoint.axes.arrays import Floats, quiet, to_numpy
from setpoint.axes.choice import (
    Choice,
    check_feasible,
    defined,
    objective_value,
    rates_reached,
    representable,
)
from setpoint.axes.class_choice import choose_classes, evaluate_classes
from setpoint.axes.group_cells import Cells, codes_of, key_of, refuse_strangers, threshold_column
from setpoint.axes.group_search import GroupSearch
from setpoint.axes.outputs import with_labels
from setpoint.axes.query_choice import choose_queries, evaluate_queries
from setpoint.axes.sample import read_to_evaluate
from setpoint.axes.scan import place, placement_at
from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.batch import ScoredExamples


def evaluate_problem(problem: Specification, examples: ScoredExamples, thresholds: Any) -> float:
    """See :meth:`setpoint.problems.Problem.evaluate`."""
    examples = with_labels(examples)
    if problem.kind == "classes":
        return evaluate_classes(problem, examples, thresholds)
    if problem.kind == "queries" or examples.queries is not None:
        return evaluate_queries(problem, examples, thresholds)
    if thresholds is None and problem.swept is None:
        return choose_thresholds(problem, examples).value
    sample = read_to_evaluate(problem.slices, examples)
    with quiet():
        if thresholds is None:
            return defined(problem, area(problem, sample.cuts), sample)
        at = _in_rows(problem, thresholds, examples.groups, sample.scores[0])
        return objective_value(problem, sample.tables_at(at[None]), sample)


def choose_thresholds(problem: Specification, examples: ScoredExamples) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`."""
    examples = with_labels(examples)
    if problem.kind == "classes":
        return choose_classes(problem, examples)
    if problem.kind == "queries" or examples.queries is not None:
        return choose_queries(problem, examples)
    return (_choose_groups if problem.kind == "groups" else _choose_for_everyone)(problem, examples)


def _choose_for_everyone(problem: Specification, examples: ScoredExamples) -> Choice:
    """The best thresholds for everyone: one, or one for each level of a range."""
    sample = read_to_evaluate(problem.slices, examples)
    with quiet():
        placed = place(sample.cuts, problem)
        tables = sample.cuts.tables_at(placed.cut)
        check_feasible(problem, tables, sample)
        value = objective_value(problem, tables, sample)
        rates = rates_reached(problem, value, tables)
        if problem.swept is not None:
            value = defined(problem, area(problem, sample.cuts), sample)
    found = placed.threshold[0].tolist()
    thresholds = tuple(representable(t, examples.scores, sample.scores[0]) for t in found)
    return Choice(thresholds, value, rates)


def _choose_groups(problem: Specification, examples: ScoredExamples) -> Choice:
    """The best threshold of every group, under what has to hold between them."""
    sample = read_to_evaluate(problem.slices, examples)
    s, both = sample.scores[0], sample.columns[0, :, :2].T
    wheres, codes = codes_of(problem, examples.groups, s)
    refuse_strangers(problem, (codes < 0) & both.any(0), examples.groups, s)
    pairs = [(both[0] * (codes == i), both[1] * (codes == i)) for i in range(len(wheres))]
    with quiet():
        cells = Cells(wheres, problem.slices, s, pairs)
        search = GroupSearch(problem, cells)
        picks = search.solve()
        tables = cells.tables(picks)
        check_feasible(problem, tables, sample)
        value = objective_value(problem, tables, sample)
        found = {}
        for cell, own, cut in zip(cells.cells, search.asked.local, picks, strict=True):
            placed = placement_at(cell.cuts, own, np.array([[cut]]), np.zeros((1, 1)))
            threshold, mine = float(placed.threshold[0, 0]), s[codes == cell.index]
            found[key_of(cell.where)] = representable(threshold, examples.scores, mine)
    return Choice(found, value, rates_reached(problem, value, tables))


def _in_rows(problem: Specification, thresholds: Any, groups: Any, s: Floats) -> Floats:
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
