"""Choose thresholds and evaluate problems on true counts, whoever shares a threshold.

The search of groups, classes and queries is imported for the first problem of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.axes.areas import area
from setpoint.axes.arrays import Floats, as_array, quiet, to_numpy
from setpoint.axes.choice import (
    Choice,
    check_feasible,
    defined,
    objective_value,
    rates_reached,
    representable,
)
from setpoint.axes.sample import read_to_evaluate
from setpoint.axes.scan import place
from setpoint.axes.specification import PER_GROUP, Specification
from setpoint.batch import ScoredExamples, missing_labels


def evaluate_problem(problem: Specification, examples: ScoredExamples, thresholds: Any) -> float:
    """See :meth:`setpoint.problems.Problem.evaluate`."""
    examples = with_labels(examples)
    if problem.kind == "classes":
        from setpoint.axes.class_choice import evaluate_classes

        return evaluate_classes(problem, examples, thresholds)
    if problem.kind == "queries" or examples.queries is not None:
        from setpoint.axes.query_choice import evaluate_queries

        return evaluate_queries(problem, examples, thresholds)
    if thresholds is None and problem.swept is None:
        return choose_thresholds(problem, examples).value
    sample = read_to_evaluate(problem.slices, examples)
    with quiet():
        if thresholds is None:
            return defined(problem, area(problem, sample.cuts), sample)
        at = _in_rows(problem, thresholds, examples.groups, sample.scores[0])
        return objective_value(problem, sample.tables_at(at[None]), sample)


def with_labels(given: ScoredExamples) -> ScoredExamples:
    """The examples whose label is not missing; all of them, as they are, if none is.

    Raises:
        ValueError: Every label is missing.

    Examples:
        >>> kept = with_labels(ScoredExamples([3.0, 2.0], [1, None], groups={"g": ["a", "b"]}))
        >>> kept.scores.tolist(), kept.labels.tolist(), kept.groups["g"].tolist()
        ([3.0], [1.0], ['a'])
    """
    truth = as_array(given.labels, "labels")
    gone = missing_labels(truth) if truth.dtype.kind in "biuf" else truth == np.array(None)
    known = np.ones(truth.shape, bool) if gone is None else ~np.asarray(gone)
    if np.all(known) or truth.size != len(truth):  # several columns have their own rules
        return given
    if not known.any():
        raise ValueError("No row has a label.")

    def kept(name: str, column: Any) -> Any:
        if column is None or name == "classes":
            return column
        if isinstance(column, Mapping):
            return {key: kept(name, values) for key, values in column.items()}
        return as_array(column, name)[known.reshape(-1)]

    return ScoredExamples(*(kept(name, column) for name, column in given._asdict().items()))


def choose_thresholds(problem: Specification, examples: ScoredExamples) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`."""
    examples = with_labels(examples)
    if problem.kind == "classes":
        from setpoint.axes.class_choice import choose_classes

        return choose_classes(problem, examples)
    if problem.kind == "queries" or examples.queries is not None:
        from setpoint.axes.query_choice import choose_queries

        return choose_queries(problem, examples)
    if problem.kind == "groups":
        from setpoint.axes.group_search import choose_groups

        return choose_groups(problem, examples)
    return _choose_for_everyone(problem, examples)


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


def _in_rows(problem: Specification, thresholds: Any, groups: Any, s: Floats) -> Floats:
    """The threshold of every example for each of the m thresholds: ``[m, 1]`` or ``[1, n]``."""
    if problem.thresholds == PER_GROUP:
        from setpoint.axes.group_cells import threshold_column

        t = threshold_column(problem, thresholds, groups, s)[None]
        shape: tuple[int, ...] = (1, len(s))
    else:
        t = np.atleast_1d(to_numpy(thresholds, "thresholds"))[:, None]
        shape = (len(problem.points), 1)
    if t.shape != shape or np.isnan(t).any():
        count = plural(len(problem.points), "threshold")
        raise ValueError(f"This problem takes {count}, none of them NaN; got {thresholds!r:.60}.")
    return t
