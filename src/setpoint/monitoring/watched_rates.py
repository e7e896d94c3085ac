"""Evidence that a certified bound is broken, from labelled rows as they come.

A bound on a single share (fpr, recall, precision, coverage) is tested by the likelihood ratios of
:mod:`setpoint.certificates.martingales`: an *event* is what the bound limits (a false alarm, a
miss), and the rows it can happen to are *relevant* (the negatives, the positives, the alerts). The
state is two counts and two numbers for each alternative.

Any other bound (a gap between groups, a balanced error, a bound with a declared prevalence) is
refuted once it fails everywhere in the box of the confidence sequences of its shares. The smallest
``delta`` at which that is so is a p-value for all times, and ``1 / delta`` is shown as evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Bools, Floats
from setpoint.certificates import Certificate
from setpoint.certificates.drift import certified_goals
from setpoint.certificates.goals import ACCEPTED, Inequality, Share, inequalities
from setpoint.certificates.martingales import (
    WEIGHTS,
    Evidence,
    bernoulli_gains,
    confidence_sequence,
    weighted_gains,
)
from setpoint.certificates.regions import signs, value_range
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Subset
from setpoint.rates import Where

_CODES = {"tn": 0, "fn": 1, "fp": 2, "tp": 3}
_RESTART_EVENTS = 3
"""Events expected at the limit between two restarts."""
_STEPS = 40


@dataclass(frozen=True)
class DecidedRows:
    """Rows with their decision and label, in the order in which they came.

    Attributes:
        alerts: Whether each was accepted.
        labels: Its true class; of no meaning where only acceptance counts.
        slices: A mask of the rows of each slice.
        shares: The probability with which the label of each row was to be known; None: 1.
        clusters: What each row belongs to, as whole numbers; None: rows are independent.
    """

    alerts: Bools
    labels: Bools
    slices: Mapping[Where, Bools]
    shares: Floats | None = None
    clusters: NDArray[np.int64] | None = None

    def rows(self, chosen: NDArray[Any]) -> DecidedRows:
        """Some of the rows."""
        return DecidedRows(
            self.alerts[chosen],
            self.labels[chosen],
            {where: inside[chosen] for where, inside in self.slices.items()},
            None if self.shares is None else self.shares[chosen],
            None if self.clusters is None else self.clusters[chosen],
        )

    def inside(self, where: Where) -> Bools | None:
        """The mask of a slice; None for everyone."""
        return self.slices[where] if where else None


@dataclass
class RateWatch(ABC):
    """One inequality of a certificate and the evidence against it."""

    inequality: Inequality
    name: str
    counted: ClassVar[str] = "rates"

    @abstractmethod
    def period_gains(self, counts: Floats) -> Floats:
        """The log likelihood ratios ``[periods, j]`` of counts ``[periods, 2]``."""

    @property
    @abstractmethod
    def needs(self) -> str:
        """Whose labels it needs: ``"none"``, ``"alerts"`` or ``"everyone"``."""

    @abstractmethod
    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[float, float, float]:
        """Count rows; with ``wait`` keep them aside until rows without it come.

        Returns:
            The events and the relevant rows that the evidence is about now and was not before,
            and the largest log evidence on the way.
        """

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """The logarithm of the evidence now."""

    @abstractmethod
    def interval(self, delta: float) -> tuple[float, float] | None:
        """An interval of the rate that holds at all times but for ``delta``; None: unknown."""

    @property
    @abstractmethod
    def value(self) -> float | None:
        """The measured rate; None before there is any."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""


@dataclass
class ShareWatch(RateWatch):
    """A bound on one share: fpr, recall, precision, coverage, error and the like."""

    evidence: Evidence = field(init=False)
    events: float = 0.0
    relevant: float = 0.0
    waiting: tuple[float, float] = (0.0, 0.0)
    least_share: float | None = None
    """The smallest share of known labels; bets were sized by it. None: all weights are 1."""

    def __post_init__(self) -> None:
        block = int(np.ceil(_RESTART_EVENTS / max(self.share.risk, 1e-6)))
        self.evidence = Evidence(WEIGHTS, block)
        bad = self.share.yes if self.share.at_most else self.share.no
        self._event = np.isin(np.arange(4), [_CODES[cell] for cell in bad])
        every = (*self.share.yes, *self.share.no)
        self._relevant = np.isin(np.arange(4), [_CODES[cell] for cell in every])

    @property
    def share(self) -> Share:
        """The share that the bound is about."""
        assert self.inequality.share is not None
        return self.inequality.share

    @property
    def needs(self) -> str:
        """See :class:`RateWatch`."""
        return {EVERYONE: "none", ACCEPTED: "alerts"}.get(self.share.subset.kind, "everyone")

    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[float, float, float]:
        """See :class:`RateWatch`."""
        chosen = self._chosen(rows)
        codes = 2 * rows.alerts[chosen].astype(np.int8) + rows.labels[chosen]
        events: NDArray[Any] = self._event[codes]
        if rows.clusters is not None:
            events = _cluster_means(events, rows.clusters[chosen])
        shares = None if rows.shares is None else rows.shares[chosen]
        weight = np.ones(len(events)) if shares is None else 1 / shares
        counts = float(events @ weight), float(weight.sum())
        if wait:
            self.waiting = (self.waiting[0] + counts[0], self.waiting[1] + counts[1])
            return 0.0, 0.0, -np.inf
        waited, highest = self.waiting, self._flush()
        self.events, self.relevant = self.events + counts[0], self.relevant + counts[1]
        counts = counts[0] + waited[0], counts[1] + waited[1]
        if not len(events):
            return *counts, highest
        cuts = self.evidence.pieces(len(events))
        gains = self._gains(events, shares, cuts)
        return *counts, max(highest, float(self.evidence.advance(cuts, gains).max()))

    def period_gains(self, counts: Floats) -> Floats:
        """See :class:`RateWatch`."""
        return bernoulli_gains(counts[:, 0], counts[:, 1], self.share.risk)

    def _chosen(self, rows: DecidedRows) -> NDArray[np.int64]:
        """The places of the relevant rows."""
        codes = 2 * rows.alerts.astype(np.int8) + rows.labels
        inside = rows.inside(self.share.subset.where)
        mask = self._relevant[codes]
        return np.flatnonzero(mask if inside is None else mask & inside)

    def _gains(self, events: NDArray[Any], shares: Floats | None, cuts: Any) -> Floats:
        risk = self.share.risk
        if shares is None:
            sums = np.concatenate([[0.0], np.cumsum(events, dtype=float)])
            return bernoulli_gains(np.diff(sums[cuts]), np.diff(cuts), risk)
        if self.least_share is None:
            self.least_share = float(shares.min())
        if shares.min() < self.least_share:
            raise ValueError(
                f"A label was known with probability {shares.min():g} only, below the smallest "
                f"share so far, {self.least_share:g}, by which bets were sized. Start a new "
                "monitor with rows of the smallest share first."
            )
        gains = weighted_gains((events - risk) / shares, self.least_share, risk)
        return np.add.reduceat(gains, cuts[:-1], axis=0)

    def _flush(self) -> float:
        """Count the rows kept aside; the log evidence after them."""
        events, relevant = self.waiting
        if not relevant:
            return -np.inf
        self.waiting = (0.0, 0.0)
        self.events, self.relevant = self.events + events, self.relevant + relevant
        gains = bernoulli_gains([events], [relevant], self.share.risk)
        cuts = np.array([0, max(1, round(relevant))])
        return float(self.evidence.advance(cuts, gains)[-1])

    @property
    def log_evidence(self) -> float:
        """See :class:`RateWatch`."""
        return self.evidence.log_value

    def rate(self, events: float, relevant: float) -> float | None:
        """The rate in the bound's own terms, from counts of events."""
        if not relevant:
            return None
        share = events / relevant
        return self.share.value(share if self.share.at_most else 1 - share)

    @property
    def value(self) -> float | None:
        """See :class:`RateWatch`."""
        return self.rate(self.events, self.relevant)

    def interval(self, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        return self.interval_of(self.events, self.relevant, delta)

    def interval_of(
        self, events: float, relevant: float, delta: float
    ) -> tuple[float, float] | None:
        """The interval of given counts; None if labels were sampled with unequal shares."""
        if self.least_share is not None:
            return None
        ends = confidence_sequence(events, relevant, delta)
        values = [self.share.value(x if self.share.at_most else 1 - x) for x in ends]
        return min(values), max(values)

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        return {
            "counts": [self.events, self.relevant],
            "waiting": list(self.waiting),
            "least_share": self.least_share,
            "evidence": self.evidence.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        self.events, self.relevant = map(float, state["counts"])
        events, relevant = map(float, state["waiting"])
        self.waiting, self.least_share = (events, relevant), state["least_share"]
        self.evidence.restore(state["evidence"])


def _cluster_means(events: NDArray[Any], clusters: NDArray[np.int64]) -> Floats:
    """The share of events in each cluster, in the order in which clusters appear."""
    _, first, which = np.unique(clusters, return_index=True, return_inverse=True)
    sums, sizes = np.bincount(which, weights=events), np.bincount(which)
    return np.asarray((sums / sizes)[np.argsort(first)])


@dataclass
class RegionWatch(RateWatch):
    """A bound on several shares, such as a gap between groups."""

    prevalence: float | None = None
    counts: dict[Subset, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        subsets = signs(self.inequality.bound.expression, self.prevalence)
        self.counts = {subset: [0.0, 0.0] for subset in subsets}

    @property
    def needs(self) -> str:
        """See :class:`RateWatch`."""
        kinds = {subset.kind for subset in self.counts}
        return "none" if kinds == {EVERYONE} else "everyone"

    def add(self, rows: DecidedRows, *, wait: bool = False) -> tuple[float, float, float]:
        """See :class:`RateWatch`; rows that must wait are left out, as are unequal shares."""
        if rows.shares is not None:
            raise ValueError(
                f"`{self.name}` is about several shares, which are tested on labels of all rows or "
                "of equally many of each; leave label_shares out."
            )
        if not wait:
            for subset, count in self.counts.items():
                for place, added in enumerate(self._count(subset, rows)):
                    count[place] += added
        total = sum(n for _, n in self.counts.values())
        return 0.0, total, self.log_evidence

    def period_gains(self, counts: Floats) -> Floats:
        """All zero but for the last period: when a change began is not estimated."""
        return np.where(np.arange(len(counts)) == len(counts) - 1, 1.0, 0.0)[:, None]

    @staticmethod
    def _count(subset: Subset, rows: DecidedRows) -> tuple[float, float]:
        """How many rows of a subset are accepted (of the prior: are positive), of how many."""
        inside = rows.inside(subset.where)
        inside = np.ones(len(rows.alerts), bool) if inside is None else inside
        event = rows.labels if subset.kind == PRIOR else rows.alerts
        if subset.kind in (POSITIVES, NEGATIVES):
            inside = inside & (rows.labels == (subset.kind == POSITIVES))
        if rows.clusters is not None and inside.any():
            means = _cluster_means(event[inside], rows.clusters[inside])
            return float(means.sum()), float(len(means))
        return float((event & inside).sum()), float(inside.sum())

    def _range(self, delta: float) -> tuple[float, float]:
        """The least and largest value over the box of confidence sequences."""
        box = {s: confidence_sequence(k, n, delta) for s, (k, n) in self.counts.items()}
        with np.errstate(all="ignore"):
            found = value_range(self.inequality.bound.expression, box, self.prevalence)
        low, high = (float(np.asarray(end)) for end in found)
        return low, high

    def _refuted(self, delta: float) -> bool:
        low, high = self._range(delta / len(self.counts))
        bound = self.inequality.bound
        return low > bound.level if bound.sense == "<=" else high < bound.level

    @property
    def log_evidence(self) -> float:
        """The largest ``log(1 / delta)`` at which the bound is refuted; 0 if at none."""
        if not all(n for _, n in self.counts.values()) or not self._refuted(0.5):
            return 0.0
        low, high = np.log(2.0), 700.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._refuted(float(np.exp(-middle))) else (low, middle)
        return float(low)

    @property
    def value(self) -> float | None:
        """See :class:`RateWatch`."""
        if not all(n for _, n in self.counts.values()):
            return None
        box = {subset: (k / n, k / n) for subset, (k, n) in self.counts.items()}
        with np.errstate(all="ignore"):
            found = value_range(self.inequality.bound.expression, box, self.prevalence)[0]
        return float(np.asarray(found))

    def interval(self, delta: float) -> tuple[float, float] | None:
        """See :class:`RateWatch`."""
        return self._range(delta / len(self.counts))

    def state(self) -> dict[str, Any]:
        """See :class:`RateWatch`."""
        return {"counts": list(self.counts.values())}

    def restore(self, state: dict[str, Any]) -> None:
        """See :class:`RateWatch`."""
        self.counts = dict(zip(self.counts, map(list, state["counts"]), strict=True))


def rate_watches(certificate: Certificate) -> list[RateWatch]:
    """A watch for every inequality of a certificate."""
    goals = certified_goals(certificate)
    found: list[RateWatch] = []
    for inequality in inequalities(goals.bounds, certificate.prevalence):
        name = str(inequality.bound)
        if inequality.share is None:
            found.append(RegionWatch(inequality, name, certificate.prevalence))
        else:
            found.append(ShareWatch(inequality, name))
    return found
