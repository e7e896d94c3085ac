"""Every way to cut the sorted scores of every query, with the counts at each cut.

The ragged counterpart of :class:`setpoint.axes.cuts.Cuts`: the cuts of all queries lie end to
end, ``n + q`` of them for ``n`` examples in ``q`` queries. What belongs to a threshold is
``[q, m]``, as it is ``[c, m]`` there, so that the same scan chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from setpoint.axes.cuts import counts_at
from setpoint.axes.segments import Segments
from setpoint.rates import Array, Tables, Where

SHORT = 2**16
"""So many queries are sorted by a radix sort: numpy has one for 16 bits."""


@dataclass(frozen=True)
class QueryCuts:
    """Counts at every cut of the sorted scores of every query."""

    scores: Array  # [n] from high to low in each query; examples of weight zero last, as -inf
    weights: Array  # [n] in the same order
    examples: Segments
    cuts: Segments
    present: Array  # [q] how many are there
    accepted: Mapping[Where, tuple[Array, Array]]  # positives and negatives, [n + q]
    _positions: list[Array] = field(default_factory=list)  # once found

    @classmethod
    def sort(
        cls, scores: Array, queries: Segments, masks: Mapping[Where, tuple[Array, Array]]
    ) -> QueryCuts:
        """Sort ``scores`` [n] within ``queries``, and add up both classes in every slice."""
        everyone = masks[()][0] + masks[()][1]
        keys = np.where(everyone > 0, scores, -np.inf)
        order = _order(keys, queries)
        none = queries.starts * 0.0

        def accepted(weights: Array) -> Array:
            return queries.fronted(queries.running(weights[order]), none)

        return cls(
            keys[order],
            everyone[order],
            queries,
            queries.longer(),
            queries.total((everyone > 0) * 1),
            {where: (accepted(p), accepted(n)) for where, (p, n) in masks.items()},
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of what is known at every cut."""
        return (1, 1, len(self.cuts.ids))

    def tables(self) -> Tables:
        """The counts at all cuts, ``[1, 1, n + q]``."""
        tables = {}
        for where, both in self.accepted.items():
            totals = (self.cuts.each(self._last(x)) for x in both)
            tables[where] = counts_at(*(x[None, None] for x in (*both, *totals)))
        return tables

    def tables_at(self, cut: Array) -> Tables:
        """The counts at one cut for each threshold, ``[q, m]``."""
        return {
            where: counts_at(
                *(self.cuts.at(x, cut) for x in both), *(self._last(x)[:, None] for x in both)
            )
            for where, both in self.accepted.items()
        }

    def valid(self) -> Array:
        """Which cuts split no equal scores, ``[1, 1, n + q]``."""
        s, queries = self.scores, self.examples
        ids, end = queries.ids, s[queries.starts] > -np.inf
        last = np.append(ids[:-1] != ids[1:], True)
        inside = np.append(s[:-1] > s[1:], True)
        inside = np.where(last, queries.each(end), inside)
        return queries.fronted(inside, end)[None, None]

    def score(self, rank: Array) -> Array:
        """The score of the given rank (0: the highest), clamped to those that are there."""
        rank = np.minimum(rank, self.present[:, None] - 1)
        return self.examples.at(self.scores, rank * (rank > 0))

    def above(self, values: Array, *, equal: bool = False) -> Array:
        """How many scores of each query are above ``values`` [q, m] (or equal), by bisection."""
        low = (values != values) * 0
        high = low + self.examples.lengths[:, None]
        longest = int(self.examples.lengths.max())
        for _ in range(longest.bit_length()):
            middle = (low + high) // 2
            here = self.examples.at(self.scores, middle)
            more = (low < high) & ((here >= values) if equal else (here > values))
            low, high = np.where(more, middle + 1, low), np.where(more, high, middle)
        return low

    def over(self, reduce: np.ufunc, values: Array) -> Array:
        """``np.minimum`` or ``np.maximum`` over the cuts of each query, ``[q, m]``."""
        return self.cuts.extreme(reduce, values[0]).T

    def along(self, values: Array) -> Array:
        """What belongs to thresholds ``[q, m]``, at every cut: ``[1, m, n + q]``."""
        return self.cuts.each(values.T)[None]

    def positions(self) -> Array:
        """How many examples every cut accepts, ``[n + q]``."""
        if not self._positions:
            self._positions.append(self.cuts.positions())
        return self._positions[0]

    def _last(self, accepted: Array) -> Array:
        """What is accepted at the last cut, ``[q]``: everyone."""
        return self.cuts.at(accepted, self.examples.lengths[:, None])[:, 0]


def _order(keys: Array, queries: Segments) -> Array:
    """By query, and from high to low within each."""
    order = np.argsort(-keys)
    ids = queries.ids[order]
    if len(queries.starts) <= SHORT:
        ids = ids.astype(np.uint16)
    return order[np.argsort(ids, kind="stable")]
