"""The true value of a problem on data: hard counts, exact thresholds, numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint.batch import describe
from setpoint.problems.areas import area, worst
from setpoint.problems.holds import tolerance
from setpoint.problems.inputs import Floats, Masks, read, to_numpy
from setpoint.problems.problem import Problem
from setpoint.problems.scan import Cuts, place, quiet
from setpoint.problems.validation import PER_GROUP
from setpoint.rates import Bound, Counts, Range, Tables


class Infeasible(ValueError):
    """No threshold reaches the targets on these data."""


@dataclass(frozen=True)
class Choice:
    """Thresholds that solve a problem on some data, and what they reach there."""

    thresholds: Any  # a tuple, one number each; for queries and groups {query: number}
    value: float
    rates: Mapping[str, float]


def evaluate(
    problem: Problem,
    scores: Any,
    labels: Any,
    thresholds: Any,
    weights: Any,
    groups: Any,
    queries: Any = None,
    classes: Any = None,
) -> float:
    """See :meth:`Problem.evaluate`."""
    if problem.kind == "classes":
        from setpoint.problems.classes.evaluate import evaluate_classes

        return evaluate_classes(problem, scores, labels, thresholds, weights, groups, classes)
    if problem.kind == "queries" or queries is not None:
        from setpoint.problems.queries import evaluate_queries

        return evaluate_queries(problem, scores, labels, thresholds, weights, groups, queries)
    if thresholds is None and problem.swept is None:
        return choose(problem, scores, labels, weights, groups).value
    s, masks = read(problem, scores, labels, weights, groups)
    with quiet(np):
        if thresholds is None:
            value = area(problem, Cuts.sort(np, s[None], _rows(masks)))
            return _defined(problem, value, masks)
        return value_of(
            problem, _tables(s, _column(problem, thresholds, groups, s), masks), s, masks
        )


def choose(
    problem: Problem,
    scores: Any,
    labels: Any,
    weights: Any,
    groups: Any,
    queries: Any = None,
    classes: Any = None,
) -> Choice:
    """See :meth:`Problem.choose`."""
    if problem.kind == "classes":
        from setpoint.problems.classes.evaluate import choose_classes

        return choose_classes(problem, scores, labels, weights, groups, classes)
    if problem.kind == "queries" or queries is not None:
        from setpoint.problems.queries import choose_queries

        return choose_queries(problem, scores, labels, weights, groups, queries)
    if problem.kind == "groups":
        from setpoint.problems.groups import choose_groups

        found: Choice = choose_groups(problem, scores, labels, weights, groups)
        return found
    s, masks = read(problem, scores, labels, weights, groups)
    with quiet(np):
        cuts = Cuts.sort(np, s[None], _rows(masks))
        placed = place(cuts, problem)
        tables = {where: _row(table) for where, table in cuts.tables_at(placed.cut).items()}
        check_feasible(problem, tables, masks)
        value = value_of(problem, tables, s, masks)
        rates = {str(problem.objective): value}
        for target in problem.subject_to:
            rates.setdefault(str(target.expression), float(np.mean(target.expression.of(tables))))
    thresholds = tuple(representable(t, scores, s) for t in placed.threshold[0].tolist())
    return Choice(thresholds, value, rates)


def _rows(masks: Masks) -> Masks:
    return {where: (p[None], n[None]) for where, (p, n) in masks.items()}


def _row(t: Counts) -> Counts:
    return Counts(*(x[0] for x in (t.tp, t.fp, t.fn, t.tn, t.positives, t.negatives)))


def _column(problem: Problem, thresholds: Any, groups: Any, s: Floats) -> Floats:
    """The threshold of every example for each of the m thresholds: ``[m, 1]`` or ``[1, n]``."""
    if problem.thresholds == PER_GROUP:
        from setpoint.problems.groups import threshold_column

        t = threshold_column(problem, thresholds, groups, s)[None]
        shape: tuple[int, ...] = (1, len(s))
    else:
        t = np.atleast_1d(to_numpy(thresholds, "thresholds"))[:, None]
        shape = (len(problem.points), 1)
    if t.shape != shape or np.isnan(t).any():
        count = plural(len(problem.points), "threshold")
        raise ValueError(f"This problem takes {count}, none of them NaN; got {thresholds!r:.60}.")
    return t


def _tables(s: Floats, thresholds: Floats, masks: Masks) -> Tables:
    accepted = s > thresholds
    tables = {}
    for where, (p, n) in masks.items():
        tp, fp = accepted @ p, accepted @ n
        tables[where] = Counts(tp, fp, p.sum() - tp, n.sum() - fp, p.sum(), n.sum())
    return tables


def value_of(problem: Problem, tables: Tables, s: Floats, masks: Masks) -> float:
    """The mean objective. 0/0 is its worst value, unless the data leave no other."""
    values = problem.objective.of(tables)
    if np.isnan(values).any():
        ends = _tables(s, np.array([[-np.inf], [np.inf]]), masks)
        if not np.isnan(problem.objective.of(ends)).all():
            values = np.where(np.isnan(values), worst(problem), values)
    return _defined(problem, float(np.mean(values)), masks)


def _defined(problem: Problem, value: float, masks: Masks) -> float:
    if np.isnan(value):
        raise ValueError(
            f"`{problem.objective}` is 0/0 here: one of its denominators is zero. "
            f"The data have {_content(masks)}; pass data with examples of every kind it counts."
        )
    return value


def check_feasible(problem: Problem, tables: Tables, masks: Masks) -> None:
    """Bounds must hold; a setpoint is the nearest attainable rate and always does."""
    for target in problem.subject_to:
        value = target.expression.of(tables)
        if isinstance(target, Range) and target.floors:
            gap = np.asarray(target.levels(len(problem.points))) - value
            missed = not np.max(gap) <= tolerance(target.expression)
        elif isinstance(target, Bound):
            missed = not np.max(target.gap(tables)) <= tolerance(target.expression)
        else:
            missed = bool(np.isnan(value).any())
        if missed:
            reached = float(np.mean(value))
            nearest = "it is 0/0" if np.isnan(reached) else f"the nearest gives {reached:.6g}"
            raise Infeasible(
                f"No threshold reaches `{' and '.join(map(str, problem.subject_to))}`: for "
                f"{target.expression} {nearest}. The data have {_content(masks)}. "
                "Loosen the target, or pass more data."
            )


def _content(masks: Masks) -> str:
    positives, negatives = masks[()]
    return describe(float(positives.sum()), float(negatives.sum()))


def representable(threshold: float, scores: Any, s: Floats) -> float:
    """The threshold in the precision of the scores, deciding the same.

    Comparing float32 scores with a number rounds the number to float32 first, and between two
    neighbours there is nothing: the threshold is then the lower one.
    """
    rounded = float(rounded_like(scores, threshold))
    if np.array_equal(s > rounded, s > threshold):
        return rounded
    return float(s[s <= threshold].max())


def rounded_like(scores: Any, thresholds: Any) -> Any:
    """Numbers in the precision of the scores, if these are floats."""
    if hasattr(scores, "new_tensor"):
        floats = scores.is_floating_point()
        return scores.new_tensor(thresholds).double().cpu().numpy() if floats else thresholds
    dtype = getattr(scores, "dtype", np.dtype(float))
    floats = getattr(dtype, "kind", "") == "f"
    return np.asarray(thresholds, dtype=dtype).astype(float) if floats else thresholds
