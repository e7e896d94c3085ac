"""The true value of a problem on data: hard counts, exact thresholds, numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_labels, check_length, check_scores, check_weights, column_of
from setpoint.batch import describe
from setpoint.problems.areas import area
from setpoint.problems.problem import PER_GROUP, Problem
from setpoint.problems.scan import TOLERANCE, Cuts, place
from setpoint.rates import Counts, Tables, Where

Floats = NDArray[np.float64]
Masks = dict[Where, tuple[Floats, Floats]]


class Infeasible(ValueError):
    """No threshold reaches the targets on these data."""


@dataclass(frozen=True)
class Choice:
    """Thresholds that solve a problem on some data, and what they reach there."""

    thresholds: tuple[float, ...]
    value: float
    rates: Mapping[str, float]


def evaluate(
    problem: Problem, scores: Any, labels: Any, thresholds: Any, weights: Any, groups: Any
) -> float:
    """See :meth:`Problem.evaluate`."""
    if thresholds is None and problem.swept is None:
        return choose(problem, scores, labels, weights, groups).value
    values, masks = read(problem, scores, labels, weights, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        if thresholds is None:
            value = area(problem, Cuts.sort(np, values[None], _rows(masks)))
        else:
            tables = _tables(values, _column(problem, thresholds, groups), masks)
            value = float(np.mean(problem.objective.of(tables)))
    return _defined(problem, value, masks)


def choose(problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any) -> Choice:
    """See :meth:`Problem.choose`."""
    if problem.thresholds == PER_GROUP:
        raise NotImplementedError(
            "Choosing one threshold per group is not available yet. Pass them: "
            "evaluate(scores, labels, thresholds={group: threshold}, groups=...)."
        )
    values, masks = read(problem, scores, labels, weights, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        cuts = Cuts.sort(np, values[None], _rows(masks))
        placed = place(cuts, problem)
        tables = cuts.tables_at(placed.cut)
        value = _defined(problem, float(np.mean(problem.objective.of(tables))), masks)
        _check_feasible(problem, placed.violation, tables, masks)
        expressions = dict.fromkeys([problem.objective, *(t.expression for t in problem.subject_to)])
        rates = {str(e): float(np.mean(e.of(tables))) for e in expressions}
    return Choice(tuple(placed.threshold[0].tolist()), value, rates)


def read(
    problem: Problem, scores: Any, labels: Any, weights: Any = None, groups: Any = None
) -> tuple[Floats, Masks]:
    """Checked scores, and for each slice of the problem the weights of both classes."""
    s, y = _flat(scores, "scores"), _flat(labels, "labels")
    if s.size == 0:
        raise ValueError("There are no scores to evaluate.")
    check_scores(s)
    check_labels(y, s)
    w = np.ones_like(s) if weights is None else _flat(weights, "weights")
    check_weights(w, s)
    masks: Masks = {}
    for where in problem.slices:
        inside = w * _members(where, groups, {c for w_ in problem.slices for c, _ in w_}, s)
        masks[where] = (inside * (y == 1), inside * (y == 0))
    return s, masks


def _members(where: Where, groups: Any, columns: set[str], s: Floats) -> NDArray[np.bool_]:
    inside = np.ones(s.shape, dtype=bool)
    for column, value in where:
        given = column_of(groups, column, columns)
        array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given).reshape(-1)
        check_length(array, s, "groups")
        matches = array == value
        if not np.any(matches):
            known = ", ".join(map(repr, np.unique(array)[:5].tolist()))
            raise ValueError(f"No example has {column} = {value!r}; the column holds {known}.")
        inside &= matches
    return inside


def _flat(values: Any, name: str) -> Floats:
    """Numpy or torch, ``[n]`` or ``[n, 1]``, as float64 ``[n]``."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers; got {values!r:.60}.") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one number an example; got the shape {array.shape}.")
    return array


def _rows(masks: Masks) -> Masks:
    return {where: (p[None], n[None]) for where, (p, n) in masks.items()}


def _column(problem: Problem, thresholds: Any, groups: Any) -> Floats:
    """The threshold of every example for each of the m thresholds: ``[m, 1]`` or ``[1, n]``."""
    if problem.thresholds == PER_GROUP:
        if not isinstance(thresholds, Mapping):
            raise TypeError("This problem has one threshold per group: pass {group: threshold}.")
        column = np.asarray(column_of(groups, "group", {"group"})).reshape(-1)
        missing = set(np.unique(column).tolist()) - set(thresholds)
        if missing:
            raise ValueError(f"No threshold for group {sorted(missing)[0]!r}.")
        return np.array([[float(thresholds[g]) for g in column.tolist()]])
    if hasattr(thresholds, "detach"):
        thresholds = thresholds.detach().cpu().double().numpy()
    t = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if t.shape != (len(problem.points),) or np.isnan(t).any():
        raise ValueError(f"This problem has {len(problem.points)} threshold(s); got {thresholds!r}.")
    return t[:, None]


def _tables(s: Floats, thresholds: Floats, masks: Masks) -> Tables:
    accepted = s > thresholds
    tables = {}
    for where, (p, n) in masks.items():
        tp, fp = accepted @ p, accepted @ n
        tables[where] = Counts(tp, fp, p.sum() - tp, n.sum() - fp, p.sum(), n.sum())
    return tables


def _defined(problem: Problem, value: float, masks: Masks) -> float:
    if np.isnan(value):
        positives, negatives = (float(m.sum()) for m in masks[()])
        raise ValueError(
            f"`{problem.objective}` is 0/0 here: the data have {describe(positives, negatives)}, "
            "and at these thresholds one of its denominators is zero."
        )
    return value


def _check_feasible(problem: Problem, violation: Floats, tables: Tables, masks: Masks) -> None:
    """Bounds must hold; a setpoint is the nearest attainable rate and always does."""
    if problem.swept is not None or not np.max(violation) > TOLERANCE:
        return
    for target, value in ((t, float(np.mean(t.expression.of(tables)))) for t in problem.subject_to):
        if hasattr(target, "sense") or np.isnan(value):
            positives, negatives = (float(m.sum()) for m in masks[()])
            raise Infeasible(
                f"No threshold reaches `{' and '.join(map(str, problem.subject_to))}`: the nearest "
                f"gives {target.expression} = {value:.6g} "
                f"({describe(positives, negatives)})."
            )
