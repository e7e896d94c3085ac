"""The true value of a problem of classes on data, and the best shifts there."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.axes.areas import class_area
from setpoint.axes.arrays import Floats, quiet, to_numpy
from setpoint.axes.choice import Choice, Infeasible, rates_reached, worst
from setpoint.axes.class_data import ClassData, read_data
from setpoint.axes.class_search import class_room, find_shifts, mean_over_classes
from setpoint.axes.confusion import hard_tables
from setpoint.axes.exact_shifts import cheapest_shifts
from setpoint.axes.scan import Worth, holds
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import Across, ClassArea, Tables


def evaluate_classes(problem: Specification, examples: ScoredExamples, shifts: Any) -> float:
    """See :meth:`setpoint.problems.Problem.evaluate`."""
    if isinstance(problem.objective, ClassArea):
        data = _read_classes(problem, examples)
        return class_area(problem.objective.kind, data)
    if shifts is None:
        return choose_classes(problem, examples).value
    data = _read_classes(problem, examples)
    t = to_numpy(shifts, "thresholds").reshape(-1)
    if t.shape != (data.scores.shape[1],) or not np.isfinite(t).all():
        raise ValueError(
            f"This problem takes one finite shift for each of {data.scores.shape[1]} classes; "
            f"got {shifts!r:.60}."
        )
    return _value_at(problem, data, t)


def choose_classes(problem: Specification, examples: ScoredExamples) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`."""
    data = _read_classes(problem, examples)
    if isinstance(problem.objective, ClassArea):
        raise ValueError(f"`{problem}` has no shifts to choose: it is about scores only.")
    shifts = _best(problem, data)
    value = _value_at(problem, data, shifts)
    with quiet():
        tables = hard_tables(data, data.scores - shifts, np.nan)
        check_reached(problem, data, tables)
        rates = rates_reached(problem, value, tables)
    return Choice(tuple(shifts.tolist()), value, rates)


def best_shifts(problem: Specification, examples: ScoredExamples) -> tuple[Floats, str]:
    """The shifts ``[K]``, and what to say if they do not reach the targets (else nothing)."""
    try:
        return np.asarray(choose_classes(problem, examples).thresholds), ""
    except Infeasible as error:
        data = read_data(problem, examples)
        return find_shifts(problem, data).shifts, f"{error} The nearest are used."


def check_reached(problem: Specification, data: ClassData, tables: Tables) -> None:
    """Bounds must hold; a coverage may be off by K - 1 examples, another setpoint by one."""
    for target in problem.points[0]:
        value = float(target.expression.of(tables))
        if not float(target.gap(tables)) <= class_room(target, data, tables):
            nearest = "it is 0/0" if np.isnan(value) else f"the nearest gives {value:.6g}"
            raise Infeasible(
                f"No shifts were found that reach `{' and '.join(map(str, problem.subject_to))}`: "
                f"for {target.expression} {nearest}. The data have {len(data.scores):,} examples "
                f"of {int((data.truth > 0).sum())} classes. Loosen the target, or pass more data."
            )


def _best(problem: Specification, data: ClassData) -> Floats:
    """The best shifts that are known: the cheapest of a cost matrix, else by coordinate descent.

    The worst of classes is looked for in two ways: over their mean helps if they are many.
    """
    first = find_shifts(problem, data, worst(problem)).shifts
    if mean_over_classes(problem) is None:
        return _cheaper(problem, data, first)
    second = find_shifts(problem, data, worst(problem), by_mean=False).shifts
    with quiet():
        tables = (hard_tables(data, data.scores - t, worst(problem)) for t in (first, second))
        one, two = (Worth.of(problem, holds(problem), each) for each in tables)
    return second if two.beats(one, 0.0, 0.0) else first


def _cheaper(problem: Specification, data: ClassData, found: Floats) -> Floats:
    """Shifts that cost less than those ``found``, if there are any."""
    better = cheapest_shifts(problem, data, found)
    if better is None:
        return found
    values = [_value_at(problem, data, shifts) for shifts in (found, better)]
    return better if (values[1] > values[0]) == problem.maximize else found


def _read_classes(problem: Specification, examples: ScoredExamples) -> ClassData:
    data = read_data(problem, examples)
    if not len(data.scores):
        raise ValueError("There are no scores to evaluate: pass at least one example.")
    for where, weights in data.inside.items():
        if where and not weights.any():
            raise ValueError(f"No example has {dict(where)}; the slice is empty.")
    everything = any(isinstance(node, (Across, ClassArea)) for node in problem.nodes())
    missing = [name for name, weight in zip(data.names, data.truth, strict=True) if not weight]
    if everything and missing:
        raise ValueError(
            f"`{problem}` looks at every class, and there is no example of {missing[0]!r}. Pass "
            "data with all classes, or leave its column out of the scores."
        )
    return data


def _value_at(problem: Specification, data: ClassData, shifts: Floats) -> float:
    """The objective; 0/0 is its worst value, unless the data leave no other."""
    with quiet():
        tables = hard_tables(data, data.scores - shifts, worst(problem))
        value = float(problem.objective.of(tables))
        if np.isnan(value):
            value = worst(problem) if _other(problem, data) else value
    if np.isnan(value):
        present = ", ".join(map(repr, np.array(data.names, object)[data.truth > 0][:10]))
        raise ValueError(
            f"`{problem.objective}` is 0/0 here: one of its denominators is zero. The data have "
            f"examples of {present}; pass data with examples of every class it counts."
        )
    return value


def _other(problem: Specification, data: ClassData) -> bool:
    """Whether the objective is defined when all examples are given some one class."""
    count = data.scores.shape[1]
    for column in range(count):
        all_one = np.tile(np.eye(count)[column], (len(data.scores), 1))
        tables = hard_tables(data, all_one, worst(problem))
        if not np.isnan(problem.objective.of(tables)):
            return True
    return False
