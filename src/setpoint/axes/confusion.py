"""The confusion matrix as a table of counts: ``entries[true, predicted]``, hard or soft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats
from setpoint.axes.class_data import ClassData, added
from setpoint.rates import ClassCounts, Classes, Counts, Reduction, Where


class Gathering:
    """One number from one a class (the first axis), with 0/0 as it was told."""

    undefined: float | None
    """What 0/0 counts as. None: such a class does not count at all (it is not in the batch)."""

    def gather(self, kind: Reduction, values: Any) -> Any:
        """The mean, smallest or largest; NaN if no class counts."""
        values = self._filled(values)
        here = ~np.isnan(values)
        if kind == "macro":
            return np.where(here, values, 0.0).sum(0) / here.sum(0)
        sign = 1.0 if kind == "lowest" else -1.0
        best = np.where(here, sign * values, np.inf).min(0)
        return np.where(here.any(0), sign * best, np.nan)

    def shares(self, kind: Reduction, values: Any) -> Any:
        """What each class contributes; equal ones share."""
        values = self._filled(values)
        here = ~np.isnan(values)
        counts = here if kind == "macro" else here & (values == self.gather(kind, values))
        return counts / np.maximum(counts.sum(0), 1)

    def _filled(self, values: Any) -> Floats:
        values = np.asarray(values, np.float64)
        return (
            values if self.undefined is None else np.where(np.isnan(values), self.undefined, values)
        )


@dataclass(frozen=True)
class Matrix(Gathering):
    """One confusion matrix, ``[K, K]``."""

    matrix: Floats
    members: Mapping[Classes, Floats]
    hit: Mapping[int, Floats] = field(default_factory=dict)
    undefined: float | None = None

    def table(self) -> Counts:
        """The counts of right and wrong decisions, with this matrix behind them."""
        right, total = self.matrix.trace(), self.matrix.sum()
        return ClassCounts(right, 0.0, total - right, 0.0, total, 0.0, confusion=self)

    def against_rest(self, classes: Classes) -> Counts:
        """The counts of a set of classes against all others."""
        one = self.members[classes]
        rows, other = self.matrix @ one, 1 - one
        truth = self.truth()
        tp, fp, positives, negatives = one @ rows, other @ rows, one @ truth, other @ truth
        return Counts(
            tp, fp, one @ (self.matrix @ other), other @ (self.matrix @ other), positives, negatives
        )

    def each(self) -> Counts:
        """The counts of every class against the rest, ``[K]``."""
        tp, truth, total = self.matrix.diagonal(), self.truth(), self.matrix.sum()
        fp = self.matrix.sum(0) - tp
        return Counts(tp, fp, truth - tp, total - truth - fp, truth, total - truth)

    def entries(self, classes: Classes | None, slopes: tuple[Any, ...]) -> Floats:
        """From slopes by TP, FP, FN, TN to slopes by entry, ``[K, K]``."""
        if classes is not None:
            one = self.members[classes]
            sides = np.stack([one, 1 - one])
            by_side = np.array(slopes, np.float64).reshape(2, 2, order="F")
            return np.asarray(sides.T @ by_side @ sides)
        count = len(self.matrix)
        tp, fp, fn, tn = (np.nan_to_num(np.broadcast_to(x, count), nan=0.0) for x in slopes)
        wrong = (fp - tn) + (fn - tn)[:, None] + tn.sum()
        np.fill_diagonal(wrong, tp - tn + tn.sum())
        return np.asarray(wrong)

    def hits(self, k: int) -> Floats:
        """Of each class, how many have their own among the ``k`` highest."""
        return self.hit[k]

    def truth(self) -> Floats:
        """How many there are of each class."""
        return np.asarray(self.matrix.sum(1))

    def cost(self, costs: Any) -> float:
        """The sum of the costs of all decisions."""
        return float((self.matrix * np.asarray(costs)).sum())

    def chosen(self, classes: Classes) -> Floats:
        """1 for the members of a set of classes, else 0."""
        return self.members[classes]


def hard_tables(
    data: ClassData, shifted: Floats, ks: frozenset[int], undefined: float | None = None
) -> dict[Where, Counts]:
    """The true counts of ``argmax(shifted)`` in every slice."""
    count = shifted.shape[1]
    cells = data.labels * count + np.argmax(shifted, axis=1)
    place = ranks(shifted, data.labels) if ks else np.zeros(0)
    tables = {}
    for where, weights in data.inside.items():
        matrix = added(cells, weights, count * count).reshape(count, count)
        hit = {k: added(data.labels, weights * (place < k), count) for k in ks}
        tables[where] = Matrix(matrix, data.members, hit, undefined).table()
    return tables


def ranks(shifted: Floats, labels: Any) -> Any:
    """How many classes come before each example's own; of equal ones the first."""
    own = shifted[np.arange(len(labels)), labels][:, None]
    before = (shifted > own) | ((shifted == own) & (np.arange(shifted.shape[1]) < labels[:, None]))
    return before.sum(1)
