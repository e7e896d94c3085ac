"""The thresholds of all groups on some data, and which threshold decides each example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints, quiet, to_numpy
from setpoint.axes.choice import Choice, check_feasible, representable, value_of
from setpoint.axes.group_cells import Cells, cells_of, columns_of, key_of
from setpoint.axes.group_search import Solver
from setpoint.axes.inputs import group_column, read
from setpoint.axes.scan import sit
from setpoint.axes.specification import Specification
from setpoint.rates import Where


def codes_of(problem: Specification, groups: Any, s: Floats) -> tuple[tuple[Where, ...], Ints]:
    """The groups, and the place of each example's group among them; -1 for groups not named.

    A problem that names no group takes them from the data.
    """
    columns = columns_of(problem) or _only(groups)
    values = {column: group_column(problem, column, groups, s) for column in columns}
    wheres = cells_of(problem)
    if not wheres:
        ((column, array),) = values.items()
        wheres = tuple(((column, value),) for value in np.unique(array).tolist())
    codes = np.full(len(s), -1, np.int64)
    for i, where in enumerate(wheres):
        inside = np.ones(len(s), bool)
        for column, value in where:
            inside &= np.asarray(values[column] == value)
        codes[inside] = i
    return wheres, codes


def choose_groups(
    problem: Specification, scores: Any, labels: Any, weights: Any, groups: Any
) -> Choice:
    """See :meth:`setpoint.problems.Problem.choose`."""
    s, masks = read(problem, scores, labels, weights, groups)
    wheres, codes = codes_of(problem, groups, s)
    everyone = sum(masks[()])
    strangers = np.flatnonzero((codes < 0) & (everyone > 0))
    if len(strangers):
        raise ValueError(_stranger(problem, groups, s, int(strangers[0])))
    pairs = [(masks[()][0] * (codes == i), masks[()][1] * (codes == i)) for i in range(len(wheres))]
    with quiet(np):
        cells = Cells(wheres, problem.slices, s, pairs)
        solver = Solver(problem, cells)
        picks = solver.solve()
        tables = cells.tables(picks)
        check_feasible(problem, tables, masks)
        value = value_of(problem, tables, s, masks)
        rates = {str(problem.objective): value}
        for target in problem.subject_to:
            rates.setdefault(str(target.expression), float(target.expression.of(tables)))
        found = {}
        for cell, own, cut in zip(cells.cells, solver.asked.local, picks, strict=True):
            placed = sit(cell.cuts, own, np.array([[cut]]), np.zeros((1, 1)))
            threshold = float(placed.threshold[0, 0])
            mine = s[codes == cell.index]
            found[key_of(cell.where)] = representable(threshold, scores, mine)
    return Choice(found, value, rates)


def threshold_column(problem: Specification, thresholds: Any, groups: Any, s: Floats) -> Floats:
    """The threshold of each example, that of its group."""
    if not isinstance(thresholds, Mapping):
        raise TypeError("This problem has one threshold per group: pass {group: threshold}.")
    columns = columns_of(problem) or _only(groups)
    values = {column: group_column(problem, column, groups, s) for column in columns}
    found, known = np.zeros(len(s)), np.zeros(len(s), bool)
    for key, threshold in thresholds.items():
        parts = (key,) if len(columns) == 1 else key
        inside = np.ones(len(s), bool)
        for column, value in zip(columns, parts, strict=True):
            inside &= np.asarray(values[column] == value)
        found[inside] = to_numpy(threshold, "thresholds")
        known |= inside
    if not known.all():
        row = int((~known).argmax())
        whose = [array[row].item() for array in values.values()]
        missing = whose[0] if len(whose) == 1 else tuple(whose)
        raise ValueError(f"No threshold for group {missing!r}; add it to thresholds=.")
    return found


def _only(groups: Any) -> tuple[str]:
    """The column of a problem that names none: the only one given."""
    alone = isinstance(groups, Mapping) and len(groups) == 1
    return (str(next(iter(groups))) if alone else "group",)


def _stranger(problem: Specification, groups: Any, s: Floats, row: int) -> str:
    """Whose group the problem does not name."""
    values = {c: group_column(problem, c, groups, s)[row] for c in columns_of(problem)}
    text = " and ".join(f"{column} = {value!s}" for column, value in values.items())
    return (
        f"Row {row} has {text}, a group that the problem names nowhere. With one threshold per "
        "group, name it in the problem, or leave its rows out."
    )
