"""The confusion matrix at one cut of the path of a shift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.problems.classes.along import Along
from setpoint.problems.classes.data import Floats
from setpoint.problems.classes.matrix import Gathering
from setpoint.rates import Classes, Counts
from setpoint.rates.classes import ClassCounts


@dataclass(frozen=True)
class At(Gathering):
    """What :class:`Along` is at one cut."""

    along: Along
    cut: Any

    @property
    def undefined(self) -> float | None:  # type: ignore[override]
        """See :class:`Gathering`."""
        return self.along.undefined

    def table(self) -> Counts:
        """The counts of right and wrong decisions."""
        t = self._at(self.along.table())
        every = (t.tp, t.fp, t.fn, t.tn, t.positives, t.negatives)
        return ClassCounts(*every, confusion=self)

    def against_rest(self, classes: Classes) -> Counts:
        """The counts of a set of classes against all others."""
        return self._at(self.along.against_rest(classes))

    def each(self) -> Counts:
        """The counts of every class against the rest."""
        return self._at(self.along.each())

    def hits(self, k: int) -> Any:
        """Of each class, how many have their own among the ``k`` highest."""
        return self._pick(self.along.hits(k))

    def cost(self, costs: Any) -> Any:
        """The sum of the costs of all decisions."""
        return self._pick(self.along.cost(costs))

    def truth(self) -> Floats:
        """How many there are of each class."""
        return self.along.truth()

    def chosen(self, classes: Classes) -> Floats:
        """1 for the members of a set of classes, else 0."""
        return self.along.chosen(classes)

    def _pick(self, values: Any) -> Any:
        moves = np.ndim(values) and np.shape(values)[-1] > 1
        return values[..., 0, 0, self.cut] if moves else np.asarray(values)[..., 0]

    def _at(self, t: Counts) -> Counts:
        every = (t.tp, t.fp, t.fn, t.tn, t.positives, t.negatives)
        return Counts(*(self._pick(x) if np.ndim(x) else x for x in every))
