"""Evidence that a certified bound is broken, from labelled rows as they come.

A bound on one quotient of counts (fpr, recall, precision, coverage, F1, a cost) says that the mean
of ``event - limit * relevant`` over rows is at most 0, where an *event* is what the bound limits (a
false alarm, a miss, the part of the largest cost that a row has) and the rows it can happen to are
*relevant* (the negatives, the positives, the alerts, all). Bets on that mean are test martingales
(:mod:`setpoint.certificates.martingales`); of rows that count 0 or 1 they are likelihood ratios.
The state is two counts and two numbers for each alternative.

Bounds on several shares are in :mod:`setpoint.monitoring.watched_regions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Bools, Floats
from setpoint.certificates.goals import ACCEPTED, Inequality, inequalities
from setpoint.certificates.martingales import (
    MOST_LOST,
    WEIGHTS,
    Evidence,
    bernoulli_gains,
    bets_of,
    confidence_sequence,
    moments,
    overdrawn,
    ratio_sequence,
    tempered,
    weighted_gains,
)
from setpoint.certificates.regions import weights as rate_weights
from setpoint.certificates.sample import EVERYONE
from setpoint.monitoring.history import change_point
from setpoint.monitoring.incoming_rows import IncomingRows
from setpoint.monitoring.label_selection import Tally
from setpoint.problems import Capacity
from setpoint.rates import Rate, Where, coverage, is_cost

_CELLS = ("tn", "fn", "fp", "tp")
_RESTART_EVENTS = 3
"""Events expected at the limit between two restarts."""
_FIRST_SHARES = (1.0, 10.0)
"""Labels and their weights that the size of bets on sampled labels begins with: a tenth."""


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

    @property
    @abstractmethod
    def wheres(self) -> tuple[Where, ...]:
        """The slices it is about; the empty one is everyone."""

    @property
    @abstractmethod
    def decisions(self) -> tuple[int, ...]:
        """The decisions it is about: 1 alerts, 0 other rows."""

    @abstractmethod
    def add(self, rows: IncomingRows, period: str = "") -> tuple[list[float], float]:
        """Count rows of a period in their order; those without a label only if it needs none.

        Returns:
            The counts that the evidence is about now and was not before (those of
            :meth:`rate`), and the largest log evidence on the way.
        """

    @property
    def least_share(self) -> float:
        """The smallest share of labels among rows of a decision that :meth:`add_tally` can use."""
        return 0.0

    @abstractmethod
    def adapt(self, tally: Tally) -> None:
        """Choose the size of bets for the next block from the share of labels in this one."""

    @abstractmethod
    def add_tally(self, tally: Tally) -> tuple[list[float], float]:
        """Count a block of rows whose order is not known; see :meth:`add`.

        Labelled rows of a decision stand for all rows of it
        (:mod:`setpoint.monitoring.label_selection`).
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
        """An interval from counts that holds at all times but for ``delta``; None: no counts."""

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
        (tp, fp, fn, tn), (*base,) = rate_weights(rate)
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

    def of_cells(self, cells: NDArray[np.int64], amounts: Floats | None) -> tuple[Floats, Floats]:
        """How much of an event rows of some cells are, and how relevant."""
        events, relevant = self.events[cells], self.relevant[cells]
        if self.largest_amount is not None:
            assert amounts is not None
            part = np.minimum(amounts / self.largest_amount, 1.0)
            events = np.where(cells % 2 == 1, events * part, events)
        return events, relevant


@dataclass
class ShareWatch(RateWatch):
    """A bound on one share or another quotient of counts: fpr, recall, precision, F1, a cost."""

    excess: Excess
    evidence: Evidence = field(init=False)
    events: float = 0.0
    relevant: float = 0.0
    more: Floats | None = None
    """What moments are more than of rows that are 0 or 1; None as long as all rows are."""
    largest: float = 1.0
    """The largest row, weighted."""
    scale: float = 1.0
    """What bets on blocks with missing labels are multiplied by."""
    sampled: tuple[float, float] = _FIRST_SHARES
    """How many sampled labels there were, and the sum of their weights."""

    def __post_init__(self) -> None:
        block = int(np.ceil(_RESTART_EVENTS / max(self.excess.limit, 1e-6)))
        self.evidence = Evidence(WEIGHTS, block)
        self._bets = bets_of(self.excess.limit)
        counted = np.concatenate([self.excess.events, self.excess.relevant])
        if self.excess.largest_amount is not None or not np.isin(counted, [0.0, 1.0]).all():
            self.more = np.zeros(5)

    @property
    def needs(self) -> str:
        """See :class:`RateWatch`."""
        share = self.inequality.share
        if share is None:
            return "everyone"
        return {EVERYONE: "none", ACCEPTED: "alerts"}.get(share.subset.kind, "everyone")

    @property
    def wheres(self) -> tuple[Where, ...]:
        """See :class:`RateWatch`."""
        rate = next(iter(self.inequality.bound.expression.rates()), None)
        return (() if rate is None else rate.where,)

    @property
    def decisions(self) -> tuple[int, ...]:
        """See :class:`RateWatch`."""
        return _decisions(self.excess.relevant)

    def add(self, rows: IncomingRows, period: str = "") -> tuple[list[float], float]:
        """See :class:`RateWatch`."""
        events, relevant, scales = self._units(rows)
        least = 1.0
        if rows.shares is not None and self.needs != "none":
            least = float(rows.shares.min(initial=1.0))
        lost = overdrawn(self._bets, self.excess.limit, scales.max(initial=0.0), least)
        cuts = self.evidence.pieces(len(events))
        gains = self._gains(events, relevant, scales, cuts, lost)
        self.largest = max(self.largest, float(scales.max(initial=0.0)) / least)
        sums = None if self.more is None else moments(scales * events, scales * relevant)
        self.evidence.give_up(lost)
        found = self._count(events.sum(), relevant.sum(), cuts, gains, sums)
        self.evidence.give_up(lost)
        return found

    def add_tally(self, tally: Tally) -> tuple[list[float], float]:
        """See :class:`RateWatch`."""
        cells = tally.units[:, 1].astype(np.int64)
        amounts, number = tally.units[:, 2], tally.units[:, 4]
        events, relevant = self.excess.of_cells(cells, amounts)
        weights, bets = self._weights(tally, cells), self._bets
        cuts = np.array([0, round(float(number[relevant > 0].sum()))])
        sums = float(number @ (weights * events)), float(number @ (weights * relevant))
        if self.more is None and (weights[relevant > 0] == 1).all():
            return self._count(*sums, cuts, bernoulli_gains(*sums, self.excess.limit)[None])
        self._weigh()
        self.largest = max(self.largest, float((weights * relevant).max(initial=0.0)))
        squares = moments(weights * events, weights * relevant, number)
        if tally.stated:
            bets = tempered(bets, self.excess.limit, weights.max(initial=1.0))
        gains = weighted_gains(bets, events - self.excess.limit * relevant, weights)
        return self._count(*sums, cuts, (number @ gains)[None], squares)

    def _weights(self, tally: Tally, cells: NDArray[np.int64]) -> Floats:
        """What the excess of each unit of a tally is multiplied by."""
        stated, number = tally.units[:, 3:].T
        if tally.stated:
            (count, total), inverse = self.sampled, 1 / np.where(stated > 0, stated, 1.0)
            self.sampled = count + float(number.sum()), total + float(number @ inverse)
            return count / total * inverse
        shares, kinds, scale = tally.shares[0], list(self.decisions), self.scale
        self.adapt(tally)
        if len(kinds) == 1 or (shares[kinds] == 1).all():
            return np.ones(len(cells))
        return np.asarray(scale / np.maximum(shares, 1e-300)[cells // 2])

    @property
    def least_share(self) -> float:
        """See :class:`RateWatch`."""
        most = float(self._bets.max()) * self.excess.limit
        return self.scale * most / MOST_LOST if len(self.decisions) > 1 else 0.0

    def adapt(self, tally: Tally) -> None:
        """See :class:`RateWatch`: half of it comes from the rows that events happen to."""
        happen = [a for a in _decisions(self.excess.events) if tally.totals[0, a]]
        if happen and len(self.decisions) > 1:
            self.scale += 0.5 * (float(tally.shares[0, happen].min()) - self.scale)

    def _count(
        self,
        events: float,
        relevant: float,
        cuts: Any,
        gains: Floats,
        sums: Floats | None = None,
    ) -> tuple[list[float], float]:
        """Add counts and the log gains of pieces; the counts, and the largest log evidence."""
        self.events, self.relevant = self.events + float(events), self.relevant + float(relevant)
        counts, highest = [float(events), float(relevant)], -np.inf
        if self.more is not None and sums is not None:
            more = sums - _of_zeros_and_ones(counts)
            self.more, counts = self.more + more, [*counts, *more.tolist()]
        if cuts[-1]:
            highest = float(self.evidence.advance(cuts, gains).max())
        return counts, highest

    def _units(self, rows: IncomingRows) -> tuple[Floats, Floats, Floats]:
        """Events and relevance of each independent unit, weighted, and the scale of bets on it."""
        chosen = (self.excess.relevant[rows.codes] > 0) & rows.inside(self.wheres[0])
        if self.needs != "none":
            chosen &= rows.known
        own = rows.rows(np.flatnonzero(chosen))
        events, relevant = self.excess.of_cells(own.codes, own.amounts)
        scales = np.ones(len(events))
        if own.shares is not None and self.needs != "none":
            weight = 1 / own.shares
            events, relevant, scales = events * weight, relevant * weight, self._scales(weight)
        if rows.clusters is not None and own.clusters is not None:
            sizes = np.unique(rows.clusters, return_counts=True)
            size = sizes[1][np.searchsorted(sizes[0], own.clusters)]
            events, first = _cluster_sums(events / size, own.clusters)
            relevant, scales = _cluster_sums(relevant / size, own.clusters)[0], scales[first]
        if rows.clusters is not None or (own.shares is not None and self.needs != "none"):
            self._weigh()
        return events, relevant, scales

    def _weigh(self) -> None:
        """From now on rows are not all 0 or 1."""
        if self.more is None:
            self.more = np.zeros(5)

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
        if self.more is None:
            sums = np.concatenate([[0.0], np.cumsum(events)])
            return bernoulli_gains(np.diff(sums[cuts]), np.diff(cuts), limit)
        if not len(events):
            return np.zeros((len(cuts) - 1, len(self._bets)))
        bets = np.where(lost, 0.0, self._bets)
        gains = weighted_gains(bets, events - limit * relevant, scales)
        return np.asarray(np.add.reduceat(gains, cuts[:-1], axis=0))

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
        events, relevant = counts[:2]
        return self._own_terms(events / relevant) if relevant else None

    @property
    def value(self) -> float | None:
        """See :class:`RateWatch`."""
        return self.rate((self.events, self.relevant))

    def interval(self, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        more = () if self.more is None else self.more
        return self.interval_of((self.events, self.relevant, *more), delta)

    def interval_of(self, counts: Any, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        shares: tuple[Any, Any]
        if self.more is None:
            shares = confidence_sequence(counts[0], counts[1], delta)
        else:
            sums = _of_zeros_and_ones(counts)
            sums += counts[2:] if len(counts) > 2 else 0.0
            shares = ratio_sequence(sums, self.largest, delta)
        values = [self._own_terms(float(share)) for share in shares]
        return min(values), max(values)

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        return {
            "counts": [self.events, self.relevant],
            "scale": self.scale,
            "sampled": list(self.sampled),
            "more": None if self.more is None else self.more.tolist(),
            "largest": self.largest,
            "evidence": self.evidence.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        self.events, self.relevant = map(float, state["counts"])
        count, total = state["sampled"]
        self.scale, self.sampled = float(state["scale"]), (float(count), float(total))
        self.largest = float(state["largest"])
        if state["more"] is not None:
            self.more = np.array(state["more"], float).reshape(5)
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

    def add(self, rows: IncomingRows, period: str = "") -> tuple[list[float], float]:
        """See :class:`RateWatch`; all rows are of one day, and of none before it."""
        days: list[bool] = []
        begins = period != self.day
        if begins:
            if self.day and self.alerts_of_day <= self.capacity.alerts:
                days.append(False)
            self.day, self.alerts_of_day = period, 0
        before, self.alerts_of_day = self.alerts_of_day, self.alerts_of_day + int(rows.alerts.sum())
        if before <= self.capacity.alerts < self.alerts_of_day:
            days.append(True)
        over = np.array(days, bool)
        none = np.zeros(len(over), bool)
        _, highest = super().add(IncomingRows(none, over, none, none, {}))
        return [float(over.sum()), float(begins)], highest

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        return {**super().state(), "day": [self.day, self.alerts_of_day]}

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        super().restore(state)
        self.day, self.alerts_of_day = str(state["day"][0]), int(state["day"][1])


def _of_zeros_and_ones(counts: Any) -> Floats:
    """The moments of rows that are 0 or 1."""
    events, relevant = counts[:2]
    return np.array([events, relevant, events, events, relevant], float)


def _decisions(cells: Floats) -> tuple[int, ...]:
    """The decisions of which some cell (``tn, fn, fp, tp``) counts."""
    return tuple(kind for kind in (0, 1) if cells[2 * kind : 2 * kind + 2].any())


def _cluster_sums(values: Floats, clusters: NDArray[np.int64]) -> tuple[Floats, NDArray[np.intp]]:
    """The sum over each cluster, in the order in which clusters appear, and their first rows."""
    _, first, which = np.unique(clusters, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sums = np.bincount(which.reshape(-1), weights=values, minlength=len(first)).astype(float)
    return sums[order], first[order]
