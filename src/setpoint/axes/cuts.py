"""Every way to cut sorted scores, with the counts at each cut.

Sort the scores from high to low. Cut ``k`` accepts the ``k`` highest, so running sums give the
counts at all ``n + 1`` cuts at once. Equal scores are never split.

Shapes: ``c`` outputs, ``m`` thresholds of each, ``n`` scores: cuts are ``[c, m, n + 1]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from setpoint.rates import Array, Counts, Tables, Where


@dataclass(frozen=True)
class Cuts:
    """Counts at every cut of the sorted scores."""

    scores: Array  # [c, n] from high to low; examples of weight zero come last, as -inf
    rising: Array  # [c, n] the same with their signs turned
    present: Array  # [c] how many are there
    running: Mapping[Where, tuple[Array, Array]]  # accepted positives and negatives [c, n + 1]

    @classmethod
    def sort(cls, scores: Array, masks: Mapping[Where, tuple[Array, Array]]) -> Cuts:
        """Sort ``scores`` [c, n] and add up the weights of both classes in every slice."""
        positives, negatives = masks[()]
        there = positives + negatives > 0
        turned = np.where(there, -scores, np.inf)
        order = turned.argsort(-1)
        running = {w: (_sums(p, order), _sums(q, order)) for w, (p, q) in masks.items()}
        rising = take(turned, order)
        return cls(-rising, rising, there.sum(-1), running)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of counts at every cut: outputs, thresholds, cuts."""
        c, n = self.scores.shape
        return (c, 1, n + 1)

    def tables(self) -> Tables:
        """The counts at all cuts, ``[c, 1, n + 1]``."""
        return {
            w: counts_at(tp[:, None], fp[:, None], tp[:, None, -1:], fp[:, None, -1:])
            for w, (tp, fp) in self.running.items()
        }

    def tables_at(self, cut: Array) -> Tables:
        """The counts at one cut for each threshold, ``[c, m]``."""
        return {
            w: counts_at(take(tp, cut), take(fp, cut), tp[:, -1:], fp[:, -1:])
            for w, (tp, fp) in self.running.items()
        }

    def valid(self) -> Array:
        """Which cuts split no equal scores, ``[c, 1, n + 1]``."""
        s = self.scores
        end = s[:, :1] > -np.inf  # cut 0; true wherever there is anybody
        return np.concatenate([end, s[:, :-1] > s[:, 1:], end], -1)[:, None]

    def over(self, reduce: np.ufunc, values: Array) -> Array:
        """``np.minimum`` or ``np.maximum`` over all cuts, ``[c, m, n + 1]`` to ``[c, m]``."""
        return reduce.reduce(values, -1)

    def along(self, values: Array) -> Array:
        """What belongs to thresholds ``[c, m]``, at every cut."""
        return values[..., None]

    def positions(self) -> Array:
        """How many examples every cut accepts, ``[n + 1]``."""
        return np.arange(self.shape[-1])

    def score(self, rank: Array) -> Array:
        """The score of the given rank (0: the highest), clamped to those that are there."""
        return take(self.scores, np.minimum(rank, self.present[:, None] - 1))

    def above(self, values: Array, *, equal: bool = False) -> Array:
        """How many scores are above ``values`` [c, m] (or equal): always a valid cut."""
        return bisect(self.rising, -values, "right" if equal else "left")


def counts_at(tp: Array, fp: Array, positives: Array, negatives: Array) -> Counts:
    """A table of counts from what is accepted and the class totals."""
    return Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)


def tables_of(counts: Array, totals: Array, slices: tuple[Where, ...]) -> Tables:
    """Accepted weight ``[c, m, k]``, two columns per slice, as tables ``[c, m]``.

    Rejected weight is the rest of the ``totals`` [c, k], or stands in ``k`` further columns.
    """
    k, all_ = 2 * len(slices), totals[:, None]
    no = all_ - counts if counts.shape[-1] == k else counts[..., k:]
    return {
        where: Counts(*(part[..., i + j] for part in (counts, no, all_) for j in (0, 1)))
        for i, where in zip(range(0, k, 2), slices, strict=True)
    }


def take(values: Array, index: Array) -> Array:
    """``values`` [c, n] at ``index`` [c, m]; below zero is the first."""
    if len(values) == 1:
        return values.take(index, mode="clip")
    return np.take_along_axis(values, index.clip(0), -1)


def bisect(rising: Array, values: Array, side: str = "left") -> Array:
    """The first place where ``rising`` [c, n] is at least (right: above) ``values`` [c, m]."""
    if len(rising) == 1:
        return rising[0].searchsorted(values, side)
    return np.stack([r.searchsorted(v, side) for r, v in zip(rising, values, strict=True)])


def _sums(weights: Array, order: Array) -> Array:
    sums = np.zeros((len(order), order.shape[-1] + 1))
    take(weights, order).cumsum(-1, out=sums[:, 1:])
    return sums
