"""Confusion matrices ``[true, predicted]`` as tables of counts: one, or all along a moving shift.

Lower the shift of a class, and examples come to it one after the other, each from the class that
was its second best. The matrices at all cuts of this path are read as running sums, without ever
being written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints
from setpoint.axes.class_data import ClassData, sum_by
from setpoint.rates import ClassCounts, ClassSet, Counts, OverClasses, Where


class ClassReduction:
    """The mean or an extreme of one value per class (the first axis), with a rule for 0/0."""

    undefined: float | None
    """What 0/0 counts as; None: a class with 0/0 is left out (it is not in the batch)."""

    def gather(self, kind: OverClasses, values: Any) -> Any:
        """The mean, smallest or largest; NaN if no class counts."""
        values = self._filled(values)
        here = ~np.isnan(values)
        if kind == "macro":
            return np.where(here, values, 0.0).sum(0) / here.sum(0)
        sign = 1.0 if kind == "lowest" else -1.0
        best = np.where(here, sign * values, np.inf).min(0)
        return np.where(here.any(0), sign * best, np.nan)

    def shares(self, kind: OverClasses, values: Any) -> Any:
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
class ConfusionMatrix(ClassReduction):
    """One confusion matrix, ``[K, K]``; rates of 0/0 count as ``undefined`` if it is given."""

    matrix: Floats
    members: Mapping[ClassSet, Floats]
    hit: Mapping[int, Floats] = field(default_factory=dict)
    undefined: float | None = None

    def table(self) -> Counts:
        """The counts of right and wrong decisions, with this matrix behind them."""
        right, total = self.matrix.trace(), self.matrix.sum()
        return ClassCounts(right, 0.0, total - right, 0.0, total, 0.0, confusion=self)

    def against_rest(self, classes: ClassSet) -> Counts:
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

    def entries(self, classes: ClassSet | None, slopes: tuple[Any, ...]) -> Floats:
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

    def chosen(self, classes: ClassSet) -> Floats:
        """1 for the members of a set of classes, else 0."""
        return self.members[classes]


def hard_tables(
    data: ClassData, shifted: Floats, undefined: float | None = None
) -> dict[Where, Counts]:
    """The true counts of ``argmax(shifted)`` in every slice."""
    place = _places_of_truth(shifted, data.labels) if data.ks else np.zeros(0)

    def hits(weights: Floats, k: int) -> Floats:
        return sum_by(data.labels, weights * (place < k), shifted.shape[1])

    return _tables(data, np.argmax(shifted, axis=1), hits, undefined)


def _tables(
    data: ClassData,
    predicted: Ints,
    hits: Callable[[Floats, int], Floats],
    undefined: float | None,
) -> dict[Where, Counts]:
    """The counts of some predictions in every slice; ``hits`` gives those of the top k."""
    count = data.scores.shape[1]
    cells, tables = data.labels * count + predicted, {}
    for where, weights in data.inside.items():
        matrix = sum_by(cells, weights, count * count).reshape(count, count)
        hit = {k: hits(weights, k) for k in data.ks}
        tables[where] = ConfusionMatrix(matrix, data.members, hit, undefined).table()
    return tables


def _places_of_truth(shifted: Floats, labels: Any) -> Any:
    """How many classes come before each example's own; of equal ones the first."""
    own = shifted[np.arange(len(labels)), labels][:, None]
    before = (shifted > own) | ((shifted == own) & (np.arange(shifted.shape[1]) < labels[:, None]))
    return before.sum(1)


@dataclass(frozen=True)
class ShiftPath:
    """The examples that come to class ``column`` as its shift falls, in order, and from where."""

    data: ClassData
    column: int
    order: Ints  # examples that may come, the first to come first
    left: Ints  # for each of them the class it leaves
    start: Ints  # for every example its class before any has come
    margins: Floats  # falling, of the examples in order
    shifted: Floats  # all scores minus their shifts

    @property
    def places(self) -> Floats:
        """A shift inside every cut of the margins."""
        ends = np.concatenate([[self.margins[0] + 1], self.margins, [self.margins[-1] - 1]])
        return np.asarray((ends[:-1] + ends[1:]) / 2)

    def tables_at(self, cut: int, undefined: float | None) -> dict[Where, Counts]:
        """The true counts when the first ``cut`` examples have come."""
        predicted = self.start.copy()
        predicted[self.order[:cut]] = self.column

        def hits(weights: Floats, k: int) -> Floats:
            return np.asarray(_hits_along(self, weights, k)[:, cut])

        return _tables(self.data, predicted, hits, undefined)


@dataclass(frozen=True)
class MatricesAlongPath(ClassReduction):
    """The confusion matrices along a path, read without ever writing them down."""

    path: ShiftPath
    where: Where
    undefined: float | None = None
    _known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def table(self) -> Counts:
        """The counts of right and wrong decisions, with the matrices behind them."""
        return self._once("table", self._table)

    def against_rest(self, classes: ClassSet) -> Counts:
        """The counts of a set of classes against all others."""
        return self._once(classes, lambda: self._against_rest(classes))

    def each(self) -> Counts:
        """The counts of every class against the rest; classes are the first axis."""
        return self._once("each", self._each)

    def _once(self, key: Any, make: Callable[[], Counts]) -> Counts:
        if key not in self._known:
            self._known[key] = make()
        found: Counts = self._known[key]
        return found

    def _table(self) -> Counts:
        path, total = self.path, self.weights.sum()
        right = self._run(
            self.weights @ (path.start == self.labels),
            1.0 * (path.column == self.came) - (path.left == self.came),
        )
        return ClassCounts(right, 0.0, total - right, 0.0, total, 0.0, confusion=self)

    @property
    def weights(self) -> Floats:
        """Of all rows in this slice."""
        return self.path.data.inside[self.where]

    @property
    def labels(self) -> Ints:
        """The true class of all rows."""
        return self.path.data.labels

    @property
    def came(self) -> Ints:
        """The true class of the examples that come, in order."""
        return self.labels[self.path.order]

    def _run(self, first: Any, steps: Any) -> Any:
        """A count along the path: ``first``, then one more of the weighted ``steps`` each."""
        first = np.asarray(first, np.float64)
        run = np.empty((*first.shape, 1, 1, len(self.path.order) + 1))
        run[..., 0, 0, 0] = first
        np.cumsum(steps * self.weights[self.path.order], -1, out=run[..., 0, 0, 1:])
        run[..., 1:] += first[..., None, None, None]
        return run

    def _against_rest(self, classes: ClassSet) -> Counts:
        one, path = self.path.data.members[classes], self.path
        steps = one[path.column] - one[path.left]
        taken, is_in, came_in = one[path.start], one[self.labels], one[self.came]
        tp = self._run(self.weights @ (taken * is_in), steps * came_in)
        fp = self._run(self.weights @ (taken * (1 - is_in)), steps * (1 - came_in))
        positives = self.weights @ is_in
        negatives = self.weights.sum() - positives
        return Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)

    def _each(self) -> Counts:
        path, count = self.path, self.path.shifted.shape[1]
        right = path.start == self.labels
        steps = np.zeros((count, len(path.order)))
        steps[path.left, np.arange(len(path.order))] = -1
        steps[path.column] += 1
        of_class = self.came == np.arange(count)[:, None]
        tp = self._run(np.bincount(self.labels, self.weights * right, count), steps * of_class)
        fp = self._run(np.bincount(path.start, self.weights * ~right, count), steps * ~of_class)
        truth = self.truth()[:, None, None, None]
        others = truth.sum() - truth
        return Counts(tp, fp, truth - tp, others - fp, truth, others)

    def entries(self, classes: ClassSet | None, slopes: tuple[Any, ...]) -> Any:
        """Not along a path: only values are scanned."""
        raise NotImplementedError

    def hits(self, k: int) -> Any:
        """Of each class, how many have their own among the ``k`` highest, at every cut."""
        return _hits_along(self.path, self.weights, k)[:, None, None]

    def truth(self) -> Floats:
        """How many there are of each class."""
        return sum_by(self.labels, self.weights, self.path.shifted.shape[1])

    def cost(self, costs: Any) -> Any:
        """The sum of the costs of all decisions."""
        prices, path = np.asarray(costs), self.path
        first = self.weights @ prices[self.labels, path.start]
        return self._run(first, prices[self.came, path.column] - prices[self.came, path.left])

    def chosen(self, classes: ClassSet) -> Floats:
        """1 for the members of a set of classes, else 0."""
        return self.path.data.members[classes]


def _hits_along(path: ShiftPath, weights: Floats, k: int) -> Floats:
    """Of each class, the weight of those whose own is among the ``k`` highest, ``[K, n + 1]``.

    While the shift of one class moves, an example of that class is among the first ``k`` as long as
    the shift is below some value, an example of another class as long as it is above one.
    """
    labels, k = path.data.labels, min(k, path.shifted.shape[1])
    own = path.shifted[np.arange(len(labels)), labels]
    others = path.shifted.copy()
    others[:, path.column] = -np.inf
    mine = labels == path.column
    rival = -np.partition(-others, k - 1, axis=1)[:, k - 1]  # what the moving class must beat
    before = (others > own[:, None]).sum(1)
    turn = path.data.scores[:, path.column] - np.where(mine, rival, own)
    sure, may = ~mine & (before < k - 1), mine | (before == k - 1)
    hit = np.empty((path.shifted.shape[1], len(path.margins) + 1))
    for column in range(len(hit)):
        here = labels == column
        order = np.argsort(turn[here & may])
        sums = np.concatenate([[0.0], np.cumsum(weights[here & may][order])])
        below = sums[np.searchsorted(turn[here & may][order], path.places)]
        changing = sums[-1] - below if column == path.column else below
        hit[column] = weights[here & sure].sum() + changing
    return hit
