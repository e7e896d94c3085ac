"""Who comes to a class as its shift falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.problems.classes.data import ClassData, Floats, Whole


@dataclass(frozen=True)
class Path:
    """Who comes to ``column``, in order, and from where; the others stay with ``held``."""

    data: ClassData
    column: int
    order: Whole  # rows that may come, the first to come first
    left: Whole  # for each of them the class it leaves
    start: Whole  # for every row the class it has when nobody has come
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
