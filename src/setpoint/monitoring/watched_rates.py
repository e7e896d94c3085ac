"""Evidence that a certified bound is broken, from labelled rows as they come.

A bound on one quotient of counts (fpr, recall, precision, coverage, F1, a cost) says that the mean
of ``event - limit * relevant`` over rows is at most 0, where an *event* is what the bound limits (a
false alarm, a miss, the part of the largest cost that a row has) and the rows it can happen to are
*relevant* (the negatives, the positives, the alerts, all). Bets on that mean are test martingales
(:mod:`setpoint.certificates.martingales`); of rows that count 0 or 1 they are likelihood ratios.
The state is two counts and two numbers for each alternative.

Any other bound (a gap between groups, a balanced error, a bound with a declared prevalence) is
refuted once it fails everywhere in the box of the confidence sequences of its shares, since the
first row or since a restart. The smallest ``delta`` at which that is so, each restart having its
part of it, is a p-value for all times, and ``1 / delta`` is shown as evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from setpoint.axes.arrays import Bools, Floats
from setpoint.certificates import Certificate
from setpoint.certificates.drift import certified_goals
from setpoint.certificates.goals import ACCEPTED, Inequality, as_capacity, inequalities
from setpoint.certificates.martingales import (
    FROM_START,
    WEIGHTS,
    BettingSequence,
    Evidence,
    bernoulli_gains,
    bets_of,
    confidence_sequence,
    finite_or_none,
    from_finite,
    overdrawn,
    restart_weight,
    weighted_gains,
)
from setpoint.certificates.regions import signs, value_range, weights
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Subset
from setpoint.monitoring.clusters import one_row_each
from setpoint.monitoring.history import change_point
from setpoint.problems import Capacity
from setpoint.rates import Rate, Where, coverage, is_cost

_CELLS = ("tn", "fn", "fp", "tp")
_RESTART_EVENTS = 3
"""Events expected at the limit between two restarts."""
_FIRST_SHARES = (1.0, 10.0)
"""Labels and their weights that the size of bets on sampled labels begins with: a tenth."""


@dataclass(frozen=True)
class DecidedRows:
    """Rows with their decision and label, in the order in which they came.

    Attributes:
        alerts: Whether each was accepted.
        labels: Its true class; of no meaning where only acceptance counts.
        slices: A mask of the rows of each slice.
        shares: The probability with which the label of each row was to be known; None: 1.
        clusters: What each row belongs to, as whole numbers; None: rows are independent.
        amounts: What each row is worth, if costs go by it.
        least_share: The smallest probability of all rows that came with them, labelled or not.
        period: The name of the period that all of them came in.
    """

    alerts: Bools
    labels: Bools
    slices: Mapping[Where, Bools]
    shares: Floats | None = None
    clusters: NDArray[np.int64] | None = None
    amounts: Floats | None = None
    least_share: float = 1.0
    period: str = ""

    def rows(self, chosen: Any) -> DecidedRows:
        """Some of the rows."""
        return DecidedRows(
            self.alerts[chosen],
            self.labels[chosen],
            {where: inside[chosen] for where, inside in self.slices.items()},
            None if self.shares is None else self.shares[chosen],
            None if self.clusters is None else self.clusters[chosen],
            None if self.amounts is None else self.amounts[chosen],
            self.least_share,
            self.period,
        )

    def inside(self, where: Where) -> Bools | None:
        """The mask of a slice; None for everyone."""
        return self.slices[where] if where else None

    @property
    def codes(self) -> NDArray[np.int64]:
        """The cell of each row, as in ``tn, fn, fp, tp``."""
        return 2 * self.alerts.astype(np.int64) + self.labels


@dataclass
class RateWatch(ABC):
    """One inequality of a certificate and the evidence against it."""

    inequality: Inequality
    name: str
    counted: ClassVar[str] = "rates"

    @property
    def quantity(self) -> str:
        """What the bound limits, in words."""
        return str(self.inequality.bound.expression)

    @property
    @abstractmethod
    def needs(self) -> str:
        """Whose labels it needs: ``"none"``, ``"alerts"`` or ``"everyone"``."""

    @abstractmethod
    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[list[float], float]:
        """Count rows; with ``wait`` keep them aside until rows without it come.

        Returns:
            The counts that the evidence is about now and was not before (those of
            :meth:`rate`), and the largest log evidence on the way.
        """

    @abstractmethod
    def change(self, counts: Floats) -> int:
        """The period with which a break most likely began, from counts ``[periods, c]``."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """The logarithm of the evidence now."""

    @abstractmethod
    def rate(self, counts: Any) -> float | None:
        """The rate in the bound's own terms, from counts; None if there are none."""

    @abstractmethod
    def interval_of(self, counts: Any, delta: float) -> tuple[float, float] | None:
        """An interval from counts that holds at all times but for ``delta``; None: unknown."""

    @property
    @abstractmethod
    def value(self) -> float | None:
        """The measured rate; None before there is any."""

    @abstractmethod
    def interval(self, delta: float) -> tuple[float, float] | None:
        """The interval of all rows so far."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""


@dataclass(frozen=True)
class Excess:
    """What each cell counts as: how much of an event it is, and how relevant.

    Attributes:
        events: By cell ``tn, fn, fp, tp``, between 0 and ``relevant``.
        relevant: By cell, between 0 and 1.
        limit: The largest mean of events over that of relevant rows.
        line: The bound's own terms: ``line[0] + line[1] * share``; None: those of its share.
        largest_amount: What the amounts of positives are divided by, if costs go by them.
    """

    events: Floats
    relevant: Floats
    limit: float
    line: tuple[float, float] | None = None
    largest_amount: float | None = None

    @staticmethod
    def of(inequality: Inequality, largest_amount: float | None) -> Excess | None:
        """Of a bound on a share, or on another quotient; None for a bound of another kind."""
        share, rate = inequality.share, inequality.bound.expression
        largest_amount = largest_amount if is_cost(rate) else None
        if share is not None and largest_amount is None:
            bad = share.yes if share.at_most else share.no
            yes = np.array([float(cell in bad) for cell in _CELLS])
            every = np.array([float(cell in (*share.yes, *share.no)) for cell in _CELLS])
            return Excess(yes, every, share.risk)
        if not isinstance(rate, Rate):
            return None
        (tp, fp, fn, tn), (*base,) = weights(rate)
        amount = 1.0 if largest_amount is None else largest_amount
        top = np.array([tn, fn * amount, fp, tp * amount])
        below = np.array([base[3], base[2], base[1], base[0]])
        if below.min() < 0 or top[below == 0].any() or not below.any():
            return None
        values = top[below > 0] / below[below > 0]
        low, high = (0.0 if largest_amount else float(values.min())), float(values.max())
        at_most, level = inequality.bound.sense == "<=", inequality.bound.level
        events = top - low * below if at_most else high * below - top
        limit = (level - low if at_most else high - level) / (high - low)
        line = (low, high - low) if at_most else (high, low - high)
        scale = below.max()
        return Excess(events / (high - low) / scale, below / scale, limit, line, largest_amount)

    def of_rows(self, rows: DecidedRows) -> tuple[Floats, Floats]:
        """How much of an event each row is, and how relevant."""
        events, relevant = self.events[rows.codes], self.relevant[rows.codes]
        if self.largest_amount is not None:
            assert rows.amounts is not None
            part = np.minimum(rows.amounts / self.largest_amount, 1.0)
            events = np.where(rows.labels, events * part, events)
        return events, relevant


@dataclass
class ShareWatch(RateWatch):
    """A bound on one share or another quotient of counts: fpr, recall, precision, F1, a cost."""

    excess: Excess
    evidence: Evidence = field(init=False)
    events: float = 0.0
    relevant: float = 0.0
    waiting: list[float] = field(default_factory=list)
    """Events, relevant rows, their number and the log gains of those kept aside."""
    sequence: BettingSequence | None = None
    """The confidence sequence of rows that are not all 0 or 1; None as long as there are none."""
    sampled: tuple[float, float] = _FIRST_SHARES
    """How many sampled labels there were, and the sum of their weights."""

    def __post_init__(self) -> None:
        block = int(np.ceil(_RESTART_EVENTS / max(self.excess.limit, 1e-6)))
        self.evidence = Evidence(WEIGHTS, block)
        self._bets = bets_of(self.excess.limit)
        counted = np.concatenate([self.excess.events, self.excess.relevant])
        if self.excess.largest_amount is not None or not np.isin(counted, [0.0, 1.0]).all():
            self.sequence = BettingSequence(self.excess.limit)

    @property
    def needs(self) -> str:
        """See :class:`RateWatch`."""
        share = self.inequality.share
        if share is None:
            return "everyone"
        return {EVERYONE: "none", ACCEPTED: "alerts"}.get(share.subset.kind, "everyone")

    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[list[float], float]:
        """See :class:`RateWatch`."""
        events, relevant, scales = self._units(rows)
        counts = np.array([events.sum(), relevant.sum()])
        cuts = np.array([0, len(events)]) if wait else self.evidence.pieces(len(events))
        lost = overdrawn(self._bets, self.excess.limit, scales.max(initial=0.0), rows.least_share)
        gains = self._gains(events, relevant, scales, cuts, lost)
        if wait:
            added = [*counts.tolist(), float(len(events)), *gains.sum(0).tolist()]
            kept = self.waiting or [0.0] * len(added)
            self.waiting = [old + new for old, new in zip(kept, added, strict=True)]
            return [0.0, 0.0], -np.inf
        if self.sequence is not None:
            self.sequence.add(events, relevant, scales, rows.least_share)
        waited, highest = self._flush()
        self.events, self.relevant = self.events + counts[0], self.relevant + counts[1]
        if len(events):
            self.evidence.give_up(lost)
            highest = max(highest, float(self.evidence.advance(cuts, gains).max()))
            self.evidence.give_up(lost)
        return (counts + waited).tolist(), highest

    def _units(self, rows: DecidedRows) -> tuple[Floats, Floats, Floats]:
        """Events and relevance of each independent unit, weighted, and the scale of bets on it."""
        inside = rows.inside(() if (r := self._rate()) is None else r.where)
        chosen = self.excess.relevant[rows.codes] > 0
        members = np.flatnonzero(chosen if inside is None else chosen & inside)
        own = rows.rows(members)
        events, relevant = self.excess.of_rows(own)
        scales = np.ones(len(events))
        if own.shares is not None:
            weight = 1 / own.shares
            events, relevant, scales = events * weight, relevant * weight, self._scales(weight)
        if rows.clusters is not None and own.clusters is not None:
            sizes = np.unique(rows.clusters, return_counts=True)
            size = sizes[1][np.searchsorted(sizes[0], own.clusters)]
            events, first = _cluster_sums(events / size, own.clusters)
            relevant, scales = _cluster_sums(relevant / size, own.clusters)[0], scales[first]
        if self.sequence is None and (own.shares is not None or rows.clusters is not None):
            self.sequence = BettingSequence(self.excess.limit)
            self.sequence.add_counts(self.events, self.relevant)
        return events, relevant, scales

    def _rate(self) -> Rate | None:
        return next(iter(self.inequality.bound.expression.rates()), None)

    def _scales(self, weight: Floats) -> Floats:
        """What bets on sampled labels are multiplied by: the mean share of the labels before."""
        count, total = self.sampled
        before = np.cumsum(weight) - weight
        self.sampled = count + len(weight), total + float(weight.sum())
        return np.minimum(1.0, (count + np.arange(len(weight))) / (total + before))

    def _gains(
        self, events: Floats, relevant: Floats, scales: Floats, cuts: Any, lost: Bools
    ) -> Floats:
        """The log gains of each piece, ``[pieces, j]``."""
        limit = self.excess.limit
        if self.sequence is None:
            sums = np.concatenate([[0.0], np.cumsum(events)])
            return bernoulli_gains(np.diff(sums[cuts]), np.diff(cuts), limit)
        if not len(events):
            return np.zeros((len(cuts) - 1, len(self._bets)))
        bets = np.where(lost, 0.0, self._bets)
        gains = weighted_gains(bets, events - limit * relevant, scales)
        return np.asarray(np.add.reduceat(gains, cuts[:-1], axis=0))

    def _flush(self) -> tuple[Floats, float]:
        """Count the rows kept aside: their counts, and the log evidence after them."""
        if not self.waiting or not self.waiting[2]:
            return np.zeros(2), -np.inf
        events, relevant, units, *gains = self.waiting
        self.waiting = []
        self.events, self.relevant = self.events + events, self.relevant + relevant
        cuts = np.array([0, round(units)])
        return np.array([events, relevant]), float(
            self.evidence.advance(cuts, np.array([gains]))[-1]
        )

    def change(self, counts: Floats) -> int:
        """See :class:`RateWatch`."""
        return change_point(bernoulli_gains(counts[:, 0], counts[:, 1], self.excess.limit))

    @property
    def log_evidence(self) -> float:
        """See :class:`RateWatch`."""
        return self.evidence.log_value

    def _own_terms(self, share: float) -> float:
        """A share of events as a value of the bound's expression."""
        if self.excess.line is not None:
            return self.excess.line[0] + self.excess.line[1] * share
        known = self.inequality.share
        assert known is not None
        return known.value(share if known.at_most else 1 - share)

    def rate(self, counts: Any) -> float | None:
        """See :class:`RateWatch`."""
        events, relevant = counts
        return self._own_terms(events / relevant) if relevant else None

    @property
    def value(self) -> float | None:
        """See :class:`RateWatch`."""
        return self.rate((self.events, self.relevant))

    def interval(self, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        if self.sequence is None:
            return self.interval_of((self.events, self.relevant), delta)
        return self._ends(self.sequence.interval(delta))

    def interval_of(self, counts: Any, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`; None for rows that are not all 0 or 1."""
        if self.sequence is not None:
            return None
        events, relevant = counts
        return self._ends(confidence_sequence(events, relevant, delta))

    def _ends(self, shares: tuple[Any, Any]) -> tuple[float, float]:
        values = [self._own_terms(float(share)) for share in shares]
        return min(values), max(values)

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        sequence = self.sequence
        return {
            "counts": [self.events, self.relevant],
            "waiting": self.waiting,
            "sampled": list(self.sampled),
            "sequence": None if sequence is None else finite_or_none(sequence.log_capital),
            "evidence": self.evidence.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        self.events, self.relevant = map(float, state["counts"])
        self.waiting, (count, total) = list(state["waiting"]), state["sampled"]
        self.sampled = float(count), float(total)
        if state["sequence"] is not None:
            self.sequence = BettingSequence(self.excess.limit)
            kept = from_finite(state["sequence"])
            self.sequence.log_capital = kept.reshape(self.sequence.bets.shape)
        self.evidence.restore(state["evidence"])


@dataclass
class CapacityWatch(ShareWatch):
    """A promise of at most so many alerts a day: days are the draws, and need no labels.

    A day counts as an event as soon as it has an alert too many, and as none when a later day
    begins. In the history every day counts from its first row on.
    """

    capacity: Capacity = field(kw_only=True)
    day: str = ""
    alerts_of_day: int = 0

    @staticmethod
    def of(capacity: Capacity) -> CapacityWatch:
        """The watch of ``coverage <= 1 - share`` on days instead of rows."""
        (inequality,) = inequalities((coverage <= 1 - capacity.share,), None)
        excess = Excess.of(inequality, None)
        assert excess is not None
        return CapacityWatch(inequality, str(capacity), excess, capacity=capacity)

    @property
    def quantity(self) -> str:
        """See :class:`RateWatch`."""
        return f"{self.capacity.period}s with more than {self.capacity.alerts:,} alerts"

    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[list[float], float]:
        """See :class:`RateWatch`; all rows are of one day, and of none before it."""
        days: list[bool] = []
        begins = rows.period != self.day
        if begins:
            if self.day and self.alerts_of_day <= self.capacity.alerts:
                days.append(False)
            self.day, self.alerts_of_day = rows.period, 0
        before, self.alerts_of_day = self.alerts_of_day, self.alerts_of_day + int(rows.alerts.sum())
        if before <= self.capacity.alerts < self.alerts_of_day:
            days.append(True)
        over = np.array(days, bool)
        _, highest = super().add(DecidedRows(over, np.zeros(len(over), bool), {}), wait=wait)
        return [float(over.sum()), float(begins)], highest

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        return {**super().state(), "day": [self.day, self.alerts_of_day]}

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        super().restore(state)
        self.day, self.alerts_of_day = str(state["day"][0]), int(state["day"][1])


def _cluster_sums(values: Floats, clusters: NDArray[np.int64]) -> tuple[Floats, NDArray[np.intp]]:
    """The sum over each cluster, in the order in which clusters appear, and their first rows."""
    _, first, which = np.unique(clusters, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sums = np.bincount(which.reshape(-1), weights=values, minlength=len(first)).astype(float)
    return sums[order], first[order]


_WINDOWS = 12
"""Restarts of a bound on several shares that are kept, more of the late ones."""
_WINDOW_ROWS = 200
"""Rows between two restarts; more of them the more rows there were."""


@dataclass
class RegionWatch(RateWatch):
    """A bound on several shares, such as a gap between groups."""

    prevalence: float | tuple[float, float] | None = None
    windows: list[tuple[int, int, Floats]] = field(init=False)
    """The number of each restart, the row it began at, and the counts since then ``[k, 2]``."""
    rows: int = 0

    def __post_init__(self) -> None:
        self.subsets = tuple(signs(self.inequality.bound.expression, self.prevalence))
        self.windows = [(0, 0, np.zeros((len(self.subsets), 2)))]
        self.restarts = 0

    @property
    def needs(self) -> str:
        """See :class:`RateWatch`."""
        return "none" if {subset.kind for subset in self.subsets} == {EVERYONE} else "everyone"

    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[list[float], float]:
        """See :class:`RateWatch`; rows that must wait are left out."""
        if rows.clusters is not None:
            rows = rows.rows(one_row_each(rows.clusters))
        total, begin = np.zeros((len(self.subsets), 2)), 0
        while begin < len(rows.alerts) and not wait:
            step = max(_WINDOW_ROWS, self.rows // 500)
            end = begin + step - (self.rows - self.windows[-1][1]) % step
            part = rows.rows(slice(begin, end))
            counts = np.array([self._count(subset, part) for subset in self.subsets])
            self.windows = [(r, start, seen + counts) for r, start, seen in self.windows]
            self.rows, total = self.rows + len(part.alerts), total + counts
            begin += len(part.alerts)
            if self.rows - self.windows[-1][1] >= step:
                self._restart()
        return total.reshape(-1).tolist(), self.log_evidence

    def _restart(self) -> None:
        """Begin another window; drop the one whose neighbours are closest if there are many."""
        self.restarts += 1
        self.windows.append((self.restarts, self.rows, np.zeros((len(self.subsets), 2))))
        if len(self.windows) > _WINDOWS:
            ages = self.rows + 1 - np.array([start for _, start, _ in self.windows], float)
            del self.windows[1 + int(np.argmin(ages[:-2] / ages[2:]))]

    @staticmethod
    def _count(subset: Subset, rows: DecidedRows) -> tuple[float, float]:
        """How many rows of a subset are accepted (of the prior: are positive), of how many."""
        inside = rows.inside(subset.where)
        inside = np.ones(len(rows.alerts), bool) if inside is None else inside
        event = rows.labels if subset.kind == PRIOR else rows.alerts
        if subset.kind in (POSITIVES, NEGATIVES):
            inside = inside & (rows.labels == (subset.kind == POSITIVES))
        return float((event & inside).sum()), float(inside.sum())

    def _range(self, counts: Floats, deltas: Any) -> tuple[Any, Any]:
        """The least and largest value over the box of confidence sequences."""
        part = np.asarray(deltas) / len(self.subsets)
        box = {
            s: confidence_sequence(k, n, part)
            for s, (k, n) in zip(self.subsets, counts, strict=True)
        }
        with np.errstate(all="ignore"):
            return value_range(self.inequality.bound.expression, box, self.prevalence)

    def _refuted(self, counts: Floats, deltas: Any) -> Bools:
        low, high = self._range(counts, deltas)
        bound = self.inequality.bound
        return np.asarray(low > bound.level if bound.sense == "<=" else high < bound.level)

    @property
    def log_evidence(self) -> float:
        """The largest ``log(1 / delta)`` at which the bound is refuted; 0 if at none."""
        best = 0.0
        for restart, _, counts in self.windows:
            part = FROM_START if not restart else (1 - FROM_START) * float(restart_weight(restart))
            lowest = best - np.log(part)
            if counts[:, 1].all() and self._refuted(counts, np.exp(-max(lowest, np.log(2.0)))):
                best = max(best, self._largest(counts, lowest) + float(np.log(part)))
        return best

    def _largest(self, counts: Floats, low: float) -> float:
        """The largest ``log(1 / delta)`` at which counts refute the bound, to 1 %."""
        high = 700.0
        for _ in range(3):
            tried = np.linspace(low, high, 40)
            last = int(
                np.flatnonzero(np.append(True, self._refuted(counts, np.exp(-tried[1:]))))[-1]
            )
            low, high = tried[last], tried[min(last + 1, 39)]
        return float(low)

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
        return {"windows": windows, "rows": self.rows, "restarts": self.restarts}

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        self.rows, self.restarts = int(state["rows"]), int(state["restarts"])
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
