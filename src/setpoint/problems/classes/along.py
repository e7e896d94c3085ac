"""The confusion matrices along the path of one shift, read without ever writing them down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint.problems.classes.data import Floats, Whole, added
from setpoint.problems.classes.matrix import Gathering
from setpoint.problems.classes.paths import Path, hits_along
from setpoint.rates import Classes, Counts, Where
from setpoint.rates.classes import ClassCounts


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
    def labels(self) -> Whole:
        """The true class of all rows."""
        return self.path.data.labels

    @property
    def came(self) -> Whole:
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
