"""Evidence against a bound on several shares: a gap between groups, a balanced error.

Such a bound (or one with a declared prevalence) is refuted once it fails everywhere in the box of
the confidence sequences of its shares, since the first row or since a restart. The smallest
``delta`` at which that is so, each restart having its part of it, is a p-value for all times, and
``1 / delta`` is shown as evidence.

Where labels are partial, every row of a block counts as the same part of one. It is chosen by the
blocks before (:meth:`RegionWatch.adapt`): a part that followed the block's own labels could be
larger where alerts happen to be many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import xlogy

from setpoint.axes.arrays import Bools, Floats
from setpoint.certificates import Certificate
from setpoint.certificates.drift import certified_goals
from setpoint.certificates.goals import as_capacity, inequalities
from setpoint.certificates.martingales import FROM_START, confidence_sequence, restart_weight
from setpoint.certificates.regions import signs, value_range
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR
from setpoint.monitoring.counted_rows import one_row_each
from setpoint.monitoring.incoming_rows import IncomingRows
from setpoint.monitoring.label_selection import Tally
from setpoint.monitoring.watched_rates import CapacityWatch, Excess, RateWatch, ShareWatch
from setpoint.rates import Where

_COUNTED = {
    EVERYONE: ((0, 0, 1, 1), (1, 1, 1, 1)),
    POSITIVES: ((0, 0, 0, 1), (0, 1, 0, 1)),
    NEGATIVES: ((0, 0, 1, 0), (1, 0, 1, 0)),
    PRIOR: ((0, 1, 0, 1), (1, 1, 1, 1)),
}
"""By kind of subset: which cells (``tn, fn, fp, tp``) are accepted (of the prior: positive), and
which belong to it."""

_WINDOWS = 12
"""Restarts of a bound on several shares that are kept, more of the late ones."""
_WINDOW_ROWS = 200
"""Rows between two restarts; more of them the more rows there were."""
_BELOW, _RECOVERY = 0.8, 0.05
"""Of the share of labels that a row counts as, and how fast that part rises again."""


@dataclass
class RegionWatch(RateWatch):
    """A bound on several shares, such as a gap between groups."""

    prevalence: float | tuple[float, float] | None = None
    windows: list[tuple[int, int, Floats]] = field(init=False)
    """The number of each restart, the row it began at, and the counts since then ``[k, 2]``."""
    rows: int = 0
    parts: Floats = field(init=False)
    """By slice, the part of one that a row counts as when labels are partial, ``[s, 1]``."""

    def __post_init__(self) -> None:
        self.subsets = tuple(signs(self.inequality.bound.expression, self.prevalence))
        self.parts = np.ones((len(self.wheres), 1))
        self.windows = [(0, 0, np.zeros((len(self.subsets), 2)))]
        self.restarts = 0
        self._known: float | None = 0.0
        """The evidence, if it is known since the last row."""

    @property
    def needs(self) -> str:
        """See :class:`RateWatch`."""
        return "none" if {subset.kind for subset in self.subsets} == {EVERYONE} else "everyone"

    @property
    def wheres(self) -> tuple[Where, ...]:
        """See :class:`RateWatch`."""
        return tuple(dict.fromkeys(subset.where for subset in self.subsets))

    @property
    def decisions(self) -> tuple[int, ...]:
        """See :class:`RateWatch`."""
        return 0, 1

    def add(self, rows: IncomingRows, period: str = "") -> tuple[list[float], float]:
        """See :class:`RateWatch`."""
        if self.needs != "none":
            rows = rows.rows(np.flatnonzero(rows.known))
        if rows.clusters is not None:
            rows = rows.rows(one_row_each(rows.clusters))
        total, begin, codes = np.zeros((len(self.subsets), 2)), 0, rows.codes
        insides = [rows.inside(where) for where in self.wheres]
        while begin < len(rows):
            step = max(_WINDOW_ROWS, self.rows // 500)
            part = slice(begin, begin + step - (self.rows - self.windows[-1][1]) % step)
            cells = [np.bincount(codes[part][each[part]], minlength=4) for each in insides]
            total += self._count(np.array(cells), len(codes[part]))
            begin = part.stop
        return total.reshape(-1).tolist(), self.log_evidence

    def adapt(self, tally: Tally) -> None:
        """See :class:`RateWatch`: at once below the smaller share of labels, slowly up to it."""
        least = tally.shares.min(1, keepdims=True)
        aim = np.where(least < 1, _BELOW * least, 1.0)
        self.parts = np.where(least < self.parts, aim, self.parts + _RECOVERY * (aim - self.parts))

    def add_tally(self, tally: Tally) -> tuple[list[float], float]:
        """See :class:`RateWatch`; all rows count as the same part of one, by their decision."""
        place, code = tally.units[:, 0].astype(int), tally.units[:, 1].astype(int)
        parts = np.minimum(self.parts, tally.shares.min(1, keepdims=True))
        weights = parts / np.maximum(tally.shares, 1e-300)
        self.adapt(tally)
        cells = np.zeros((len(self.wheres), 4))
        np.add.at(cells, (place, code), tally.units[:, 4] * weights[place, code // 2])
        rows = round(float(tally.known.sum(1).max(initial=0)))
        return self._count(cells, rows).reshape(-1).tolist(), self.log_evidence

    def _count(self, cells: Floats, rows: int) -> Floats:
        """Add so many rows, from counts by slice and cell; what each share counts, ``[k, 2]``."""
        counts = np.array(
            [
                np.array(_COUNTED[subset.kind]) @ cells[self.wheres.index(subset.where)]
                for subset in self.subsets
            ],
            float,
        )
        self.windows = [(r, start, seen + counts) for r, start, seen in self.windows]
        self.rows, self._known = self.rows + rows, None
        if self.rows - self.windows[-1][1] >= max(_WINDOW_ROWS, (self.rows - rows) // 500):
            self._restart()
        return counts

    def _restart(self) -> None:
        """Begin another window; drop the one whose neighbours are closest if there are many."""
        self.restarts += 1
        self.windows.append((self.restarts, self.rows, np.zeros((len(self.subsets), 2))))
        if len(self.windows) > _WINDOWS:
            ages = self.rows + 1 - np.array([start for _, start, _ in self.windows], float)
            del self.windows[1 + int(np.argmin(ages[:-2] / ages[2:]))]

    def _range(self, counts: Floats, deltas: Any) -> tuple[Any, Any]:
        """The least and largest value over the box of confidence sequences of ``[..., k, 2]``."""
        part = np.asarray(deltas)[..., None] / len(self.subsets)
        low, high = confidence_sequence(counts[..., 0], counts[..., 1], part)
        box = {s: (low[..., i], high[..., i]) for i, s in enumerate(self.subsets)}
        with np.errstate(all="ignore"):
            return value_range(self.inequality.bound.expression, box, self.prevalence)

    def _refuted(self, counts: Floats, deltas: Any) -> Bools:
        low, high = self._range(counts, deltas)
        bound = self.inequality.bound
        return np.asarray(low > bound.level if bound.sense == "<=" else high < bound.level)

    @property
    def log_evidence(self) -> float:
        """The largest ``log(1 / delta)`` at which the bound is refuted; 0 if at none."""
        if self._known is None:
            self._known = self._evidence()
        return self._known

    def _evidence(self) -> float:
        """By window, the largest ``log(1 / delta)`` that refutes the bound less its price."""
        number = np.array([restart for restart, _, _ in self.windows])
        counts = np.stack([seen for _, _, seen in self.windows])
        later = (1 - FROM_START) * restart_weight(np.maximum(number, 1))
        price = -np.log(np.where(number == 0, FROM_START, later))
        lowest = np.maximum(price, np.log(2.0))
        refuted = counts[:, :, 1].all(1) & self._refuted(counts, np.exp(-lowest))
        if not refuted.any():
            return 0.0
        counts, price, low = counts[refuted], price[refuted], lowest[refuted]
        high = np.full(len(low), 700.0)
        for _ in range(3):  # to 1 %
            tried = np.linspace(low, high, 40, axis=1)
            holds = ~self._refuted(counts[:, None], np.exp(-tried))
            holds[:, 0] = False
            last = np.where(holds.any(1), holds.argmax(1), 40) - 1
            place = np.arange(len(low))
            low, high = tried[place, last], tried[place, np.minimum(last + 1, 39)]
        return float((low - price).max())

    def change(self, counts: Floats) -> int:
        """See :class:`RateWatch`: where two shares each, before and after, fit best.

        A change must be worth a nat for each share and the logarithm of the number of periods,
        else the first period is returned.
        """
        seen = counts.reshape(len(counts), -1, 2)
        later = np.cumsum(seen[::-1], axis=0)[::-1]

        def fit(both: Floats) -> Any:
            k, n = both[..., 0], np.maximum(both[..., 1], 1e-300)
            return (xlogy(k, k / n) + xlogy(n - k, 1 - k / n)).sum(-1)

        gains = fit(later) + fit(later[:1] - later) - fit(later[:1])
        best = int(np.argmax(gains)) if len(gains) else 0
        return best if gains[best] > len(self.subsets) + np.log(len(gains)) else 0

    @property
    def value(self) -> float | None:
        """See :class:`RateWatch`."""
        return self.rate(self.windows[0][2])

    def rate(self, counts: Any) -> float | None:
        """See :class:`RateWatch`."""
        pairs = np.asarray(counts, float).reshape(-1, 2)
        if len(pairs) != len(self.subsets) or not pairs[:, 1].all():
            return None
        box = {s: (k / n, k / n) for s, (k, n) in zip(self.subsets, pairs, strict=True)}
        with np.errstate(all="ignore"):
            found = value_range(self.inequality.bound.expression, box, self.prevalence)[0]
        return float(np.asarray(found))

    def interval_of(self, counts: Any, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        pairs = np.asarray(counts, float).reshape(-1, 2)
        if len(pairs) != len(self.subsets):
            return None
        low, high = (float(np.asarray(end)) for end in self._range(pairs, delta))
        return (low, high) if np.isfinite([low, high]).all() else None

    def interval(self, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        return self.interval_of(self.windows[0][2], delta)

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        windows = [[restart, start, counts.tolist()] for restart, start, counts in self.windows]
        counted = {"windows": windows, "rows": self.rows, "restarts": self.restarts}
        return counted | {"parts": self.parts[:, 0].tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        self.rows, self.restarts = int(state["rows"]), int(state["restarts"])
        self._known = None
        self.parts = np.array(state.get("parts", self.parts[:, 0]), float)[:, None]
        shape = len(self.subsets), 2
        self.windows = [
            (r, start, np.array(seen, float).reshape(shape)) for r, start, seen in state["windows"]
        ]


def rate_watches(certificate: Certificate) -> list[RateWatch]:
    """A watch for every inequality of a certificate."""
    capacity = as_capacity(certificate.goal)
    if capacity is not None:
        return [CapacityWatch.of(capacity)]
    goals, prevalence = certified_goals(certificate), certificate.prevalence
    found: list[RateWatch] = []
    for inequality in inequalities(goals.bounds, prevalence):
        name = str(inequality.bound)
        plain = inequality.share is not None or prevalence is None
        excess = Excess.of(inequality, certificate.largest_amount) if plain else None
        if excess is None or not 0 < excess.limit < 1:
            found.append(RegionWatch(inequality, name, prevalence))
        else:
            found.append(ShareWatch(inequality, name, excess))
    return found
