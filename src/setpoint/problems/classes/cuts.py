"""Every place for one shift while the others stay, with the counts at each of them.

Lower the shift of a class, and examples come to it one after the other, each from the class that
was its second best; in which order is said by the margins ``score - (best of the others)``. So one
shift is a threshold on sorted margins, and the scan that places thresholds places shifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.problems.classes.along import Along
from setpoint.problems.classes.at_cut import At
from setpoint.problems.classes.data import ClassData, Floats, Whole
from setpoint.problems.classes.decide import rivals
from setpoint.problems.classes.paths import Path
from setpoint.problems.cuts import Cuts
from setpoint.rates import Classes, Tables, Where


@dataclass(frozen=True)
class ClassCuts(Cuts):
    """Cuts of the sorted margins of one class."""

    path: Path | None = None
    undefined: float | None = None

    @classmethod
    def at(
        cls,
        data: ClassData,
        shifts: Floats,
        column: int,
        *,
        among: Whole,
        rows: Whole,
        held: Whole,
        undefined: float | None = None,
    ) -> ClassCuts:
        """All places of the shift of ``column``.

        Args:
            data: The examples.
            shifts: Those of all classes; that of ``column`` does not matter.
            column: The class whose shift is looked at.
            among: The classes that compete for ``rows``.
            rows: Examples that may change their class.
            held: The class of every example; that of other rows stays.
            undefined: See :class:`Gathering`.
        """
        shifted = data.scores - shifts
        few = shifted[np.ix_(rows, among)]
        best, whose = rivals(few, int(np.flatnonzero(among == column)[0]))
        margins = data.scores[rows, column] - best
        falling = np.argsort(-margins, kind="stable")
        start = held.copy()
        start[rows] = among[whose]
        sorted_margins = snapped(margins[falling], float(np.abs(data.scores).max()))
        path = Path(
            data, column, rows[falling], among[whose][falling], start, sorted_margins, shifted
        )
        scores = sorted_margins[None]
        present = np.array([len(rows)])
        return cls(np, scores, -scores, present, {}, path, undefined)

    @cached_property
    def _along(self) -> dict[Where, Along]:
        assert self.path is not None
        inside = self.path.data.inside
        return {where: Along(self.path, where, self.undefined) for where in inside}

    def tables(self) -> Tables:
        """The counts at all cuts, ``[1, 1, n + 1]``."""
        return {where: along.table() for where, along in self._along.items()}

    def tables_at(self, cut: Any) -> Tables:
        """The counts at one cut, ``[1, 1]``."""
        return {where: At(along, cut).table() for where, along in self._along.items()}


def snapped(falling: Floats, size: float) -> Floats:
    """Margins that differ by rounding alone become equal: no shift could tell them apart."""
    opens = np.concatenate([[True], falling[:-1] - falling[1:] > 1e-12 * size])
    return np.asarray(falling[opens][np.cumsum(opens) - 1])


def with_caps(hold: Any, column: int, members: Mapping[Classes, Floats]) -> Any:
    """A target as the scan of one shift sees it: what another class gets, this one loses."""
    sides = {
        bool(members[rate.classes][column]) for rate in hold.expression.rates() if rate.classes
    }
    if hold.caps is None or len(sides) != 1:
        return replace(hold, caps=None, sorts=False)
    return replace(hold, caps=hold.caps == sides.pop(), sorts=False)
