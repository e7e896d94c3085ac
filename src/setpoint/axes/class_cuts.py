"""Who comes to a class as its shift falls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, Ints
from setpoint.axes.class_data import ClassData, added, rivals
from setpoint.axes.confusion import Gathering
from setpoint.axes.cuts import Cuts
from setpoint.rates import ClassCounts, Classes, Counts, Tables, Where


@dataclass(frozen=True)
class Path:
    """Who comes to ``column``, in order, and from where; the others stay with ``held``."""

    data: ClassData
    column: int
    order: Ints  # rows that may come, the first to come first
    left: Ints  # for each of them the class it leaves
    start: Ints  # for every row the class it has when nobody has come
    margins: Floats  # falling, of the rows in order
    shifted: Floats  # all scores minus their shifts

    @property
    def places(self) -> Floats:
        """A shift inside every cut of the margins."""
        ends = np.concatenate([[self.margins[0] + 1], self.margins, [self.margins[-1] - 1]])
        return np.asarray((ends[:-1] + ends[1:]) / 2)


def hits_along(path: Path, weights: Floats, k: int) -> Floats:
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


# ------------------------------------------------------------------------------------------------
# The confusion matrices along the path of one shift, read without ever writing them down.


@dataclass(frozen=True)
class Along(Gathering):
    """The confusion matrices along a path, read without ever writing them down."""

    path: Path
    where: Where
    undefined: float | None = None
    _known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def table(self) -> Counts:
        """The counts of right and wrong decisions, with the matrices behind them."""
        return self._once("table", self._table)

    def against_rest(self, classes: Classes) -> Counts:
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
        """The true class of those who come, in order."""
        return self.labels[self.path.order]

    def _run(self, first: Any, steps: Any) -> Any:
        """A count along the path: ``first``, then one more of the weighted ``steps`` each."""
        first = np.asarray(first, np.float64)
        run = np.empty((*first.shape, 1, 1, len(self.path.order) + 1))
        run[..., 0, 0, 0] = first
        np.cumsum(steps * self.weights[self.path.order], -1, out=run[..., 0, 0, 1:])
        run[..., 1:] += first[..., None, None, None]
        return run

    def _against_rest(self, classes: Classes) -> Counts:
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

    def entries(self, classes: Classes | None, slopes: tuple[Any, ...]) -> Any:
        """Not along a path: only values are scanned."""
        raise NotImplementedError

    def hits(self, k: int) -> Any:
        """Of each class, how many have their own among the ``k`` highest, at every cut."""
        return hits_along(self.path, self.weights, k)[:, None, None]

    def truth(self) -> Floats:
        """How many there are of each class."""
        return added(self.labels, self.weights, self.path.shifted.shape[1])

    def cost(self, costs: Any) -> Any:
        """The sum of the costs of all decisions."""
        prices, path = np.asarray(costs), self.path
        first = self.weights @ prices[self.labels, path.start]
        return self._run(first, prices[self.came, path.column] - prices[self.came, path.left])

    def chosen(self, classes: Classes) -> Floats:
        """1 for the members of a set of classes, else 0."""
        return self.path.data.members[classes]


# ------------------------------------------------------------------------------------------------
# The confusion matrix at one cut of the path of a shift.


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


# ------------------------------------------------------------------------------------------------
# Every place for one shift while the others stay, with the counts at each of them.
#
# Lower the shift of a class, and examples come to it one after the other, each from the class that
# was its second best; in which order is said by the margins ``score - (best of the others)``. So
# one shift is a threshold on sorted margins, and the scan that places thresholds places shifts.


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
        among: Ints,
        rows: Ints,
        held: Ints,
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
