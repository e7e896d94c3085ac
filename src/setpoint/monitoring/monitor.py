"""A certificate after the first day: evidence against it that may be looked at at any time.

The chance of ever saying anything but "holds" while nothing has changed is at most ``false_alarm``
for each certificate, however often one looks. It is divided among the tests: certified rates
(:mod:`setpoint.monitoring.watched_rates`), and without labels the share of alerts and the ranks
of all scores (:mod:`setpoint.monitoring.watched_scores`). A test alarms when its evidence reaches
the reciprocal of its part. An alarm stays until :meth:`Monitor.recalibrate` or a new monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from setpoint._checks import share as check_share
from setpoint.axes.arrays import Floats
from setpoint.certificates import Certificate, certify
from setpoint.certificates.drift import chance_of_difference
from setpoint.certificates.martingales import restart_weight
from setpoint.certificates.text import share_text, text_table
from setpoint.certificates.times import PERIODS, read_times, time_text
from setpoint.monitoring.history import Alarm, History, Period, change_point
from setpoint.monitoring.incoming_rows import IncomingRows, read_rows
from setpoint.monitoring.pending_labels import PendingLabels
from setpoint.monitoring.status import (
    BROKEN,
    DRIFTING,
    HOLDS,
    lines,
    metrics,
    notes,
    status_text,
    table,
)
from setpoint.monitoring.storage import from_json, to_json
from setpoint.monitoring.watched_rates import DecidedRows, RateWatch, ShareWatch, rate_watches
from setpoint.monitoring.watched_scores import AlertWatch, RankWatch, alert_watches

WATCHED = ("rates", "alerts", "scores")
PARTS = {"rates": 0.85, "alerts": 0.11, "scores": 0.04, "features": 0.1}
"""How false alarms are divided among kinds of tests, before those not watched are left out."""
_ALL_ALERTS = 1000
"""After so many alerts and no other row, every row is taken to be an alert."""
_ALIKE = 1e-4
"""Labels of alerts and of other rows are equally frequent unless chance is rarer than this."""
_RECENT = 7
"""Periods that the histogram of the present is made of."""


class Monitor:
    """Watches a certificate; made by :meth:`setpoint.Certificate.monitor`.

    Attributes:
        certificate: What is watched.
        false_alarm: The chance of ever raising a false alarm.
        rows: How many rows have been counted.
        alarms: By test, since when it alarms.
        spent: What each recalibration has used of the confidence.

    Examples:
        >>> import numpy as np
        >>> from setpoint.certificates import certify
        >>> random = np.random.default_rng(0)
        >>> def rows(n, shift=0.0):
        ...     labels = random.random(n) < 0.2
        ...     return random.normal(size=n) + 2 * labels + shift, labels
        >>> monitor = certify(*rows(5000), "fpr <= 0.05").monitor(false_alarm=0.05)
        >>> monitor.update(*rows(2000))
        'holds'
        >>> monitor.update(*rows(2000, shift=0.5))
        'broken since update 2: fpr 12.3 % (9.22-15.9 %)'
    """

    kind = "setpoint monitor"
    version = 1

    def __init__(
        self,
        certificate: Certificate,
        false_alarm: float = 0.05,
        *,
        watch: Iterable[str] = WATCHED,
        reference: Any = None,
        features: Sequence[str] = (),
        by: str = "day",
    ) -> None:
        self.false_alarm = check_share(false_alarm, "false_alarm", ends=False)
        self.watch = tuple(watch)
        if not self.watch or set(self.watch) - set(WATCHED):
            raise ValueError(f"watch is some of {', '.join(WATCHED)}; got {self.watch!r}.")
        if by not in PERIODS:
            raise ValueError(f"by is one of {', '.join(PERIODS)}; got {by!r}.")
        self.by, self.feature_names = by, tuple(features)
        self.history, self.rows, self.updates = History(), 0, 0
        self.latest: str | None = None
        self.labelled = {"alerts": [0, 0], "others": [0, 0]}
        self.pending = PendingLabels()
        self.clusters: set[int] = set()
        self.files: list[str] = []
        self.spent: list[dict[str, Any]] = []
        self._begin(certificate, reference)

    def _begin(self, certificate: Certificate, reference: Any) -> None:
        """Watch a certificate from now on."""
        self.certificate = certificate
        self.alarms: dict[str, Alarm] = {}
        self.refused: dict[str, str] = {}
        self.rates: list[RateWatch] = rate_watches(certificate) if "rates" in self.watch else []
        self.alerts: list[AlertWatch] = []
        if "alerts" in self.watch:
            self.alerts = alert_watches(certificate)
        self.scores = RankWatch("scores") if "scores" in self.watch else None
        self.features = {name: RankWatch(f"feature {name}") for name in self.feature_names}
        if reference is not None and self.scores is not None:
            rows = read_rows(certificate, reference) if certificate.column is None else None
            if rows is None:
                raise ValueError(
                    "With a threshold for each group the first rows are the reference; leave "
                    "reference= out."
                )
            self.scores.refer_to(rows.margins, self._random())

    def update(
        self,
        scores: Any,
        labels: Any = None,
        *,
        times: Any = None,
        groups: Any = None,
        ids: Any = None,
        clusters: Any = None,
        label_shares: Any = None,
        features: Mapping[str, Any] | None = None,
    ) -> str:
        """Count new rows: a day, an hour, a single one.

        Args:
            scores: New scores of the same model.
            labels: Their labels if they are known by now; None or NaN where they are not.
            times: When each row came (dates, ISO texts or numbers); never before the last update.
            groups: The group of each row, if the certificate is about groups.
            ids: A name for each row whose label will come later (:meth:`add_labels`).
            clusters: What each row belongs to. A cluster is one draw: it counts when it is first
                seen, with the mean over its rows.
            label_shares: With which probability the label of each row was to be known, if labels
                were sampled and not equally often everywhere.
            features: Columns by name, for a monitor that was made with ``features=``.

        Returns:
            The status.

        Raises:
            ValueError: Scores that are not finite, times that go back, missing groups or features:
                nothing has been counted.
        """
        rows = read_rows(
            self.certificate,
            scores,
            labels,
            times=times,
            groups=groups,
            ids=ids,
            clusters=clusters,
            label_shares=label_shares,
            features=features,
        )
        self._check(rows)
        self.updates += 1
        for name, part in rows.periods(self.by):
            self._count(name or f"update {self.updates}", part)
        if rows.times is not None:
            self.latest = time_text(rows.times[-1])
        return self.status

    def _check(self, rows: IncomingRows) -> None:
        """Refuse an update before anything of it is counted."""
        if self.certificate.clusters is not None and rows.clusters is None:
            raise ValueError("The certificate is about a row of each cluster: pass clusters=.")
        if rows.clusters is not None and (rows.ids is not None or rows.shares is not None):
            raise ValueError(
                "clusters= counts a cluster once, with labels that are known now: leave ids= and "
                "label_shares= out, and give the rows of a cluster when its labels have come."
            )
        given = set(rows.features or {})
        if given != set(self.feature_names):
            raise ValueError(
                f"This monitor watches the features {sorted(self.feature_names)}; got "
                f"{sorted(given)}."
            )
        if rows.times is not None and self.latest is not None:
            latest, first = read_times([self.latest])[0], rows.times[0]
            if latest.dtype.kind != first.dtype.kind:
                raise ValueError(f"Times were like {self.latest} so far; got {time_text(first)}.")
            if first < latest:
                raise ValueError(
                    f"The clock goes back: rows up to {self.latest} are counted, and these begin "
                    f"at {time_text(first)}. Rows count in the order of time; give each file "
                    "once, earliest first."
                )
        if rows.ids is not None:
            self.pending.check(rows.ids)
        if rows.shares is not None and rows.known.any():
            self._check_shares(rows.shares[rows.known])

    def _check_shares(self, shares: Any) -> None:
        for watch in self.rates:
            if not isinstance(watch, ShareWatch):
                raise ValueError(
                    f"`{watch.name}` is about several shares, which are tested on labels of all "
                    "rows or of equally many of each; leave label_shares out."
                )
            if watch.least_share is not None and shares.min() < watch.least_share:
                raise ValueError(
                    f"A label was known with probability {shares.min():g}, below the smallest so "
                    f"far, {watch.least_share:g}, by which bets are sized. Start a new monitor "
                    "with rows of the smallest share first."
                )

    def _count(self, name: str, rows: IncomingRows) -> None:
        """Count the rows of one period."""
        period = self.history.open(name)
        rows = self._new_clusters(rows)
        highest: dict[str, float] = {}
        random = self._random()
        self.rows, period.rows = self.rows + len(rows), period.rows + len(rows)
        singles = rows
        if rows.clusters is not None:  # one row of each cluster
            singles = rows.rows(np.sort(np.unique(rows.clusters, return_index=True)[1]))
        for watch in self.alerts:
            alerts = singles.alerts[singles.slices[watch.where]] if watch.where else singles.alerts
            highest[watch.name] = watch.add(alerts)
            period.add("alerts", watch.name, [alerts.sum(), len(alerts)])
        if self.scores is not None:
            cells, highest["scores"] = self.scores.add(singles.margins, random)
            self._note_cells(period, self.scores, cells, singles.margins)
        for feature, each in self.features.items():
            assert singles.features is not None
            values = singles.features[feature]
            cells, highest[each.name] = each.add(values[np.isfinite(values)], random)
            self._note_cells(period, each, cells, None)
        self._count_labels(rows, period, highest)
        if rows.ids is not None:
            self.pending.add(rows, period.name)
        self._close(period, highest)

    def _note_cells(self, period: Period, watch: RankWatch, cells: Any, values: Any) -> None:
        if len(cells):
            period.add("cells", watch.name, cells)
        if values is not None and len(watch.edges):
            old = np.asarray(period.histogram) if period.histogram else 0.0
            period.histogram = (old + watch.histogram(values)).tolist()
        for old_period in self.history.periods[:-_RECENT]:
            old_period.histogram = []

    def _new_clusters(self, rows: IncomingRows) -> IncomingRows:
        """The rows of clusters that were not seen in an earlier update."""
        if rows.clusters is None:
            return rows
        seen = np.fromiter(self.clusters, np.int64, len(self.clusters))
        new = rows.rows(~np.isin(rows.clusters, seen))
        assert new.clusters is not None
        self.clusters.update(np.unique(new.clusters).tolist())
        return new

    def _count_labels(
        self, rows: IncomingRows, period: Period, highest: dict[str, float], *, total: bool = True
    ) -> None:
        """Give labelled rows to the rates, as far as the choice of labels allows."""
        if rows.shares is None:
            for kind, inside in (("alerts", rows.alerts), ("others", ~rows.alerts)):
                self.labelled[kind][0] += int((rows.known & inside).sum())
                self.labelled[kind][1] += int(inside.sum()) if total else 0
        decided = DecidedRows(rows.alerts, rows.labels, rows.slices, rows.shares, rows.clusters)
        labelled = decided.rows(np.flatnonzero(rows.known))
        selective = rows.shares is None and not self._alike()
        for watch in self.rates:
            if watch.needs == "none":
                if not total:
                    continue
                unweighted = DecidedRows(rows.alerts, rows.labels, rows.slices, None, rows.clusters)
                self._add(watch, unweighted, period, highest)
            elif len(labelled.alerts):
                wait = selective and watch.needs == "everyone"
                self._add(watch, labelled, period, highest, wait=wait)
        self.refused = self._refusals(selective)

    def _add(
        self,
        watch: RateWatch,
        rows: DecidedRows,
        period: Period,
        highest: dict[str, float],
        *,
        wait: bool = False,
    ) -> None:
        events, relevant, top = watch.add(rows, wait=wait)
        highest[watch.name] = top
        period.add("rates", watch.name, [events, relevant])

    def _alike(self) -> bool:
        """Whether labels are known equally often of alerts and of other rows.

        Not before labels of both kinds have come: labels of alerts alone are no sample. Where every
        row is an alert, there is no other kind to wait for.
        """
        (k, n), (new, size) = self.labelled["alerts"], self.labelled["others"]
        if k and not new:
            return not size and n > _ALL_ALERTS
        return not n or not size or chance_of_difference(new, size, k, n) >= _ALIKE

    def _refusals(self, selective: bool) -> dict[str, str]:
        """By bound, why it is not tested."""
        if not selective or not self.labelled["others"][1]:
            return {}
        (k, n), (new, size) = self.labelled["alerts"], self.labelled["others"]
        reason = (
            f"labels are known of {share_text(k / n)} of the alerts and of "
            f"{share_text(new / size)} of the other rows: such a choice says nothing about rows "
            "that were not chosen. Label other rows as often, or at random with a known share "
            "(label_shares)"
        )
        return {w.name: reason for w in self.rates if w.needs == "everyone"}

    def add_labels(self, ids: Any, labels: Any, *, label_shares: Any = None) -> str:
        """Labels of rows that were counted before, joined by their ids.

        Args:
            ids: As in :meth:`update`. Ids that are not waiting for a label are left out and
                counted in ``pending.unknown``.
            labels: 0 or 1 for each; NaN is left out.
            label_shares: As in :meth:`update`.

        Returns:
            The status.
        """
        joined = self.pending.join(ids, labels, label_shares)
        if joined.rows.shares is not None and len(joined.rows):
            self._check_shares(joined.rows.shares)
        self.pending.forget(joined)
        for name in dict.fromkeys(joined.periods.tolist()):
            period = self.history.find(name)
            highest: dict[str, float] = {}
            part = joined.rows.rows(np.flatnonzero(joined.periods == name))
            self._count_labels(part, period, highest, total=False)
            self._close(self.history.periods[-1], highest)
        return self.status

    def _close(self, period: Period, highest: dict[str, float]) -> None:
        """Note the evidence, and alarms."""
        limits = self.limits
        for name, log in highest.items():
            if log >= limits[name] and name not in self.alarms:
                self.alarms[name] = Alarm(name, period.name, log)
        for name, test in self.tests.items():
            period.evidence[name] = test.log_evidence
        for watch in self.rates:
            interval = watch.interval(self.false_alarm / len(self.rates))
            if interval is not None and watch.value is not None:
                period.intervals[watch.name] = list(interval)

    def _random(self) -> np.random.Generator:
        """For lots among equal scores: the same in every run."""
        return np.random.default_rng([7, self.rows])

    @property
    def tests(self) -> dict[str, Any]:
        """All tests by name: of rates, alerts, scores and features, in this order."""
        scores = [] if self.scores is None else [self.scores]
        every: list[Any] = [*self.rates, *self.alerts, *scores, *self.features.values()]
        return {test.name: test for test in every}

    @property
    def budget(self) -> dict[str, float]:
        """By test its part of ``false_alarm``."""
        kinds = {
            "rates": [watch.name for watch in self.rates],
            "alerts": [alert.name for alert in self.alerts],
            "scores": [] if self.scores is None else [self.scores.name],
            "features": [ranks.name for ranks in self.features.values()],
        }
        total = sum(PARTS[kind] for kind, names in kinds.items() if names)
        return {
            name: self.false_alarm * PARTS[kind] / total / len(names)
            for kind, names in kinds.items()
            for name in names
        }

    @property
    def limits(self) -> dict[str, float]:
        """By test the log evidence at which it alarms."""
        return {name: float(np.log(1 / part)) for name, part in self.budget.items()}

    @property
    def verdict(self) -> str:
        """``"holds"``, ``"drifting"`` or ``"broken"``."""
        if any(watch.name in self.alarms for watch in self.rates):
            return BROKEN
        return DRIFTING if self.alarms else HOLDS

    @property
    def exit_code(self) -> int:
        """0 if the certificate holds, else 1."""
        return 0 if self.verdict == HOLDS else 1

    def __bool__(self) -> bool:
        return self.verdict == HOLDS

    @property
    def status(self) -> str:
        """One line: ``holds``, or what has changed, since when and by how much."""
        return status_text(self)

    def since(self, test: str) -> str:
        """The period with which the change that a test has found most likely began."""
        return self.history.periods[self.change(test)].name.split(" to ")[0]

    def change(self, test: str) -> int:
        """The place of that period in the history."""
        names = [period.name for period in self.history.periods]
        alarm, last = self.alarms.get(test), len(names) - 1
        noticed = names.index(alarm.period) if alarm and alarm.period in names else last
        watch = self.tests[test]
        gains = watch.period_gains(self.history.counts(watch.counted, test))
        return change_point(gains[: noticed + 1])

    def counts_since(self, test: str) -> Floats:
        """What a test has counted since the change."""
        counts = self.history.counts(self.tests[test].counted, test)
        return np.asarray(counts[self.change(test) :].sum(0))

    def rate_since(self, test: str) -> tuple[float | None, tuple[float, float] | None]:
        """A certified rate since the change its test has found, with an interval.

        The interval holds for all periods that a change could begin with, but for ``false_alarm``.
        """
        watch, delta = self.tests[test], self.false_alarm / len(self.rates)
        if not isinstance(watch, ShareWatch):
            return watch.value, watch.interval(delta)
        place = self.change(test)
        events, relevant = self.counts_since(test).tolist()
        part = 0.5 * delta if place == 0 else 0.5 * delta * float(restart_weight(place))
        return watch.rate(events, relevant), watch.interval_of(events, relevant, part)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: tests that are refused, labels without a row."""
        return tuple(notes(self))

    def __str__(self) -> str:
        return text_table(
            f"{self.status} ({self.certificate.goal}; {self.rows:,} rows)", lines(self)
        )

    def metrics(self) -> dict[str, float]:
        """Plain numbers by name, for Prometheus, MLflow, TensorBoard.

        ``status`` is 0 (holds), 1 (drifting) or 2 (broken); evidence is its logarithm to base 10.
        """
        return metrics(self)

    def table(self) -> list[dict[str, Any]]:
        """For each period a dict of counts, rates, intervals and evidence."""
        return table(self)

    def to_frame(self) -> Any:
        """The same as a pandas frame."""
        return import_module("pandas").DataFrame(self.table())

    def recalibrate(
        self, scores: Any, labels: Any, *, groups: Any = None, clusters: Any = None
    ) -> Certificate:
        """A new certificate of the same goal from labelled rows, and a fresh watch over it.

        The ``r``-th recalibration may be wrong with probability ``(1 - confidence) / (r (r + 1))``:
        all of them together with no more than the first certificate. What is spent is kept in
        ``spent``. Pass rows that came after the alarm: rows that raised it were not drawn by
        chance.

        Args:
            scores: Labelled rows of the present.
            labels: 0 or 1 for each.
            groups: As for :func:`setpoint.certify`.
            clusters: The same.

        Returns:
            The new certificate. If it is not certified, the monitor goes on with the old one.
        """
        if self.certificate.clusters is not None and clusters is None:
            raise ValueError("The certificate is about a row of each cluster: pass clusters=.")
        first = self.spent[0]["of"] if self.spent else 1 - self.certificate.confidence
        number = len(self.spent) + 1
        delta = first / (number * (number + 1))
        found = certify(
            scores,
            labels,
            self.certificate.goal,
            confidence=1 - delta,
            guarantee=self.certificate.guarantee,  # type: ignore[arg-type]
            prevalence=self.certificate.prevalence,
            groups=groups,
            clusters=clusters,
        )
        period = self.history.periods[-1].name if self.history.periods else "update 0"
        self.spent.append({"of": first, "delta": delta, "period": period, "status": found.status})
        if found:
            self._begin(found, scores if found.column is None else None)
            self.history = History()
            self.labelled = {"alerts": [0, 0], "others": [0, 0]}
            self.pending = PendingLabels()
        return found

    def to_json(self) -> str:
        """The monitor with its certificate as JSON, with a checksum."""
        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        return from_json(cls, text)
