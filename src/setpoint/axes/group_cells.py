"""Groups as cells: each has its own sorted scores and its own cut.

A slice of the data (everyone, one group, all women of whatever race) is a union of cells, and its
counts are the sums of theirs, each at its own cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats, Ints, to_numpy
from setpoint.axes.cuts import Cuts
from setpoint.axes.sample import group_column
from setpoint.axes.specification import Specification
from setpoint.rates import Counts, Expression, Tables, Value, Where

_Pairs = Sequence[tuple[Floats, Floats]]
"""For each cell, the weight of every example as a positive and as a negative."""


@dataclass(frozen=True)
class Cell:
    """One group: its place among all cells, and every way to cut its scores."""

    where: Where
    index: int
    cuts: Cuts
    slices: tuple[Where, ...]  # those that are this very cell
    tp: Floats  # accepted positives and negatives at every cut, [n + 1]
    fp: Floats

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which cuts split no equal scores."""
        found: NDArray[np.bool_] = self.cuts.valid()[0, 0]
        return found

    def values(self, expression: Expression) -> Floats:
        """An expression of this cell alone, at every cut."""
        found = np.asarray(expression.of(self.cuts.tables()), float)
        everywhere: Floats = np.broadcast_to(found, (1, 1, len(self.tp)))[0, 0]
        return everywhere


class Cells:
    """All cells that have examples, and the slices they make up."""

    def __init__(
        self, wheres: Sequence[Where], slices: Sequence[Where], scores: Floats, pairs: _Pairs
    ) -> None:
        self.slices = tuple(slices)
        held = [i for i, (p, n) in enumerate(pairs) if (p + n).any()]
        self.inside = np.array(
            [[set(where) <= set(wheres[i]) for i in held] for where in slices], bool
        ).reshape(len(self.slices), len(held))
        alone = self.inside.sum(1) == 1
        self.cells = []
        for g, i in enumerate(held):
            mine = tuple(w for s, w in enumerate(slices) if alone[s] and self.inside[s, g])
            self.cells.append(_make_cell(wheres[i], i, mine, scores, *pairs[i]))

    def defined(self, expression: Expression) -> bool:
        """Whether the examples at hand give it a value: fnr of a group needs its positives."""
        ends = [[0] * len(self.cells), [len(cell.tp) - 1 for cell in self.cells]]
        tables = [self.tables(picks) for picks in ends]
        return all(
            any(not np.isnan(rate.of(table)) for table in tables) for rate in expression.rates()
        )

    def cell_of(self, where: Where | None) -> int | None:
        """The place of the cell that a slice is, or None if it is several or none."""
        if where is None or where not in self.slices:
            return None
        inside = self.inside[self.slices.index(where)]
        return int(inside.argmax()) if inside.sum() == 1 else None

    def tables(self, picks: Sequence[int], along: Mapping[int, Any] | None = None) -> Tables:
        """The counts of every slice, each cell at its cut; ``along`` some cells, at many cuts."""
        cuts = {**dict(enumerate(picks)), **(along or {})}
        found = {}
        for inside, where in zip(self.inside, self.slices, strict=True):
            total: list[Any] = [0.0, 0.0, 0.0, 0.0]
            for g in np.flatnonzero(inside).tolist():
                cell = self.cells[g]
                own = (cell.tp[cuts[g]], cell.fp[cuts[g]], cell.tp[-1], cell.fp[-1])
                total = [a + b for a, b in zip(total, own, strict=True)]
            tp, fp, p, n = map(np.float64, total)
            found[where] = Counts(tp, fp, p - tp, n - fp, p, n)
        return found

    def slopes(self, expression: Expression, tables: Tables) -> Floats:
        """How an expression changes with accepted positives and negatives of each cell."""
        found = np.zeros((len(self.cells), 2))
        for (where, i), slope in expression.gradient(tables).items():
            sign = 1.0 if i < 2 else -1.0
            found[:, i % 2] += sign * float(slope) * self.inside[self.slices.index(where)]
        return found


def cells_of(problem: Specification) -> tuple[Where, ...]:
    """The groups a problem names: its slices, or all intersections if they overlap."""
    columns = problem.columns
    named = [where for where in problem.slices if where]
    if all(len(where) == len(columns) for where in named):
        return tuple(named)
    values: dict[str, dict[Value, None]] = {column: {} for column in columns}
    for where in named:
        for column, value in where:
            values[column].setdefault(value)
    return tuple(
        tuple(zip(columns, cell, strict=True)) for cell in product(*map(list, values.values()))
    )


def key_of(where: Where) -> Any:
    """How a group is called in a dict of thresholds: its value, or a tuple of them."""
    return where[0][1] if len(where) == 1 else tuple(value for _, value in where)


def codes_of(problem: Specification, groups: Any, s: Floats) -> tuple[tuple[Where, ...], Ints]:
    """The groups, and the place of each example's group among them; -1 for groups not named.

    A problem that names no group takes them from the data.
    """
    columns = problem.columns or _only(groups)
    values = {column: group_column(problem.slices, column, groups, s) for column in columns}
    wheres = cells_of(problem)
    if not wheres:
        ((column, array),) = values.items()
        wheres = tuple(((column, value),) for value in np.unique(array).tolist())
    codes = np.full(len(s), -1, np.int64)
    for i, where in enumerate(wheres):
        codes[_inside(values, where, len(s))] = i
    return wheres, codes


def threshold_column(problem: Specification, thresholds: Any, groups: Any, s: Floats) -> Floats:
    """The threshold of each example, that of its group."""
    if not isinstance(thresholds, Mapping):
        raise TypeError("This problem has one threshold per group: pass {group: threshold}.")
    columns = problem.columns or _only(groups)
    values = {column: group_column(problem.slices, column, groups, s) for column in columns}
    found, known = np.zeros(len(s)), np.zeros(len(s), bool)
    for key, threshold in thresholds.items():
        parts = (key,) if len(columns) == 1 else key
        inside = _inside(values, tuple(zip(columns, parts, strict=True)), len(s))
        found[inside] = to_numpy(threshold, "thresholds")
        known |= inside
    if not known.all():
        row = int((~known).argmax())
        whose = [array[row].item() for array in values.values()]
        missing = whose[0] if len(whose) == 1 else tuple(whose)
        raise ValueError(f"No threshold for group {missing!r}; add it to thresholds=.")
    return found


def check_known_groups(
    problem: Specification, strangers: NDArray[np.bool_], groups: Any, s: Floats
) -> None:
    """ValueError if there is an example whose group the problem does not name."""
    if not strangers.any():
        return
    row = int(strangers.argmax())
    columns = problem.columns
    values = {column: group_column(problem.slices, column, groups, s)[row] for column in columns}
    text = " and ".join(f"{column} = {value!s}" for column, value in values.items())
    raise ValueError(
        f"Row {row} has {text}, a group that the problem names nowhere. With one threshold per "
        "group, name it in the problem, or leave its rows out."
    )


def _inside(values: Mapping[str, NDArray[Any]], where: Where, count: int) -> NDArray[np.bool_]:
    """Which examples are of a group, by the columns that tell groups apart."""
    inside = np.ones(count, bool)
    for column, value in where:
        inside &= np.asarray(values[column] == value)
    return inside


def _make_cell(
    where: Where, index: int, slices: tuple[Where, ...], scores: Floats, p: Floats, n: Floats
) -> Cell:
    here = (p + n) > 0
    masks = dict.fromkeys([(), *slices], (p[here][None], n[here][None]))
    cuts = Cuts.sort(scores[here][None], masks)
    tp, fp = (side[0] for side in cuts.running[()])
    return Cell(where, index, cuts, slices, tp, fp)


def _only(groups: Any) -> tuple[str]:
    """The column of a problem that names none: the only one given."""
    alone = isinstance(groups, Mapping) and len(groups) == 1
    return (str(next(iter(groups))) if alone else "group",)
