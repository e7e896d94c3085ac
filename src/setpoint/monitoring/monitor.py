"""Watch a certificate in use: tests of what it claims that may be looked at at any time.

The chance of ever saying anything but "holds" while nothing has changed is at most ``false_alarm``
for each certificate, however often one looks. It is divided among the tests
(:mod:`setpoint.monitoring.budgets`): certified rates
(:mod:`setpoint.monitoring.watched_rates`), and without labels the share of alerts and the ranks
of all scores (:mod:`setpoint.monitoring.watched_scores`). A test alarms when its evidence reaches
the reciprocal of its part. An alarm stays until :meth:`Monitor.recalibrate` or a new monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural, quoted
from setpoint._checks import share as check_share
from setpoint.axes.arrays import Floats
from setpoint.certificates import Certificate
from setpoint.certificates.decisions import rounded
from setpoint.certificates.goals import as_capacity
from setpoint.certificates.martingales import restart_weight
from setpoint.certificates.sample import scores_and_precision
from setpoint.certificates.text import text_table
from setpoint.certificates.times import PERIODS, read_times, time_text
from setpoint.monitoring.budgets import WATCHED, budget, renew
from setpoint.monitoring.counted_rows import CountedIds, SeenClusters, one_row_each
from setpoint.monitoring.history import Alarm, History, Period
from setpoint.monitoring.incoming_rows import IncomingRows, of_outputs, read_rows
from setpoint.monitoring.label_selection import LabelSelection
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
from setpoint.monitoring.watched_rates import RateWatch
from setpoint.monitoring.watched_regions import RegionWatch, rate_watches
from setpoint.monitoring.watched_scores import (
    MISSING_FEATURE,
    AlertWatch,
    RankWatch,
    alert_watches,
    unlike,
    unranked,
)

_RECENT = 7
"""Periods that the histogram of the present is made of."""
MOST_PERIODS_AT_ONCE = 2000
"""Of one update; if there are more, neighbours are put together (but days of a capacity)."""


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
    version = 4

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
        capacity = as_capacity(certificate.goal)
        self.by = by if capacity is None else capacity.period
        self.feature_names = tuple(features)
        self.history, self.rows, self.updates = History(), 0, 0
        self.latest: str | None = None
        self.clusters, self.ids = SeenClusters(), CountedIds()
        self.files: list[Any] = []
        self.spent: list[dict[str, Any]] = []
        self.begin(certificate, reference)

    def begin(self, certificate: Certificate, reference: Any = None) -> None:
        """Watch a certificate from now on."""
        self.certificate = certificate
        self.alarms: dict[str, Alarm] = {}
        self.selection, self.pending = LabelSelection(), PendingLabels()
        self.labelled: bool | None = None
        """Whether labels are to be expected; None before the first row."""
        self.rates: list[RateWatch] = rate_watches(certificate) if "rates" in self.watch else []
        self.alerts: list[AlertWatch] = []
        if "alerts" in self.watch:
            self.alerts = alert_watches(certificate)
        ranked = "scores" in self.watch and unranked(certificate) is None
        self.scores = RankWatch("scores") if ranked else None
        self.features = {name: RankWatch(f"feature {name}") for name in self.feature_names}
        if reference is not None and self.scores is not None:
            self.scores.refer_to(self._reference_scores(reference), self._random())

    def _reference_scores(self, reference: Any) -> Any:
        why = unlike(self.certificate)
        if self.certificate.column is not None:
            why = "every group has its own threshold"
        if why is not None:
            raise ValueError(f"Leave reference= out, {why}: the first rows are the reference.")
        return rounded(scores_and_precision(reference)[0], self.certificate.dtype).astype(float)

    def expect(self, *, labelled: bool) -> None:
        """Divide the false alarms, before the first row is counted."""
        self.labelled = labelled
        for watch in self.alerts:
            watch.expect(self.budget[watch.name])

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
        amounts: Any = None,
        features: Mapping[str, Any] | None = None,
    ) -> str:
        """Count new rows: a day, an hour, a single one.

        Args:
            scores: New scores of the same model; of several outputs ``[n, k]``, and labels too.
                None at all (``[]``) change nothing.
            labels: Their labels if they are known by now; None or NaN where they are not.
            times: When each row came (dates, ISO texts or numbers); never before the last update.
                Rows of one time (all of the update, without times) count in a random order.
                Needed if the certificate is about alerts in a day.
            groups: The group of each row, if the certificate is about groups.
            ids: A name for each row whose label will come later (:meth:`add_labels`); of all rows
                if the certificate breaks ties by lot. A name that was counted is refused
                (:meth:`counted_before`).
            clusters: What each row belongs to. A cluster is one draw: it counts when it is first
                seen, with the mean over its rows.
            label_shares: With which probability the label of each row was to be known, if labels
                were sampled and not equally often everywhere; of all rows, labelled or not.
            amounts: What each row is worth, if the certificate is about costs by amounts.
            features: Columns by name, for a monitor that was made with ``features=``.

        Returns:
            The status.

        Raises:
            ValueError: Scores that are not finite, times that go back, missing groups or features:
                nothing has been counted.
        """
        if np.size(scores) == 0:
            return self.status
        columns = {"times": times, "groups": groups, "ids": ids, "clusters": clusters}
        columns |= {"label_shares": label_shares, "amounts": amounts, "features": features}
        if self.certificate.outputs and groups is None:
            scores, labels, columns = of_outputs(self.certificate, scores, labels, columns)
        rows = read_rows(self.certificate, self._random(), scores, labels, **columns)
        self._check(rows)
        if self.labelled is None:
            self.expect(labelled=bool(rows.known.any()) or ids is not None)
        self.updates += 1
        if rows.ids is not None:
            self.ids.add(rows.ids)
        most = MOST_PERIODS_AT_ONCE if as_capacity(self.certificate.goal) is None else None
        for name, part in rows.periods(self.by, most):
            self._count(name or f"update {self.updates}", part)
        if rows.times is not None:
            self.latest = time_text(rows.times[-1])
        return self.status

    def _check(self, rows: IncomingRows) -> None:
        """Refuse an update before anything of it is counted."""
        capacity = as_capacity(self.certificate.goal)
        if capacity is not None and rows.times is None:
            raise ValueError(f"`{capacity}` goes by time: pass times=, when each row came.")
        if self.certificate.clusters is not None and rows.clusters is None:
            raise ValueError(
                "It is about a row of each cluster: pass clusters= (--clusters COLUMN)."
            )
        if rows.clusters is not None and rows.ids is not None and not self.certificate.lots:
            raise ValueError(
                "clusters= counts a cluster once, with labels that are known now: leave ids= out, "
                "and give the rows of a cluster when its labels have come."
            )
        if self.certificate.largest_amount is not None and rows.amounts is None:
            raise ValueError("The certificate is about costs by amounts: pass amounts=.")
        given = set(rows.features or {})
        if given != set(self.feature_names):
            raise ValueError(
                f"This monitor watches the features {sorted(self.feature_names)}; got "
                f"{sorted(given)}."
            )
        if rows.times is not None:
            self._check_clock(rows.times[0])
        if rows.ids is not None and rows.clusters is None:
            self._check_ids(rows.ids)
        self._check_shares(rows)

    def _check_ids(self, ids: NDArray[Any]) -> None:
        first = np.unique(ids, return_index=True)[1]
        again = np.setdiff1d(np.arange(len(ids)), first)
        if not len(again):
            again = np.flatnonzero(self.counted_before(ids))
        if len(again):
            raise ValueError(
                f"The id {quoted(str(ids[again[0]]))} occurs twice: an id names one row. Leave out "
                f"what was counted ({plural(len(again), 'row')}): monitor.counted_before(ids)."
            )

    def counted_before(self, ids: Any) -> NDArray[np.bool_]:
        """Which rows were counted by these ids: among the latest 200,000, or still without a label.

        Args:
            ids: As in :meth:`update`.
        """
        names = np.asarray(ids).astype(str).reshape(-1)
        waits = np.array([str(name) in self.pending.waiting for name in names], bool)
        return np.asarray(waits | self.ids.seen(names))

    def _check_clock(self, first: Any) -> None:
        if self.latest is None:
            return
        latest = read_times([self.latest])[0]
        if latest.dtype.kind != first.dtype.kind:
            raise ValueError(f"Times were like {self.latest} so far; got {time_text(first)}.")
        if first < latest:
            raise ValueError(
                f"The clock goes back: rows up to {self.latest} are counted, and these begin at "
                f"{time_text(first)}. Rows count in the order of time; give each file once, "
                "earliest first."
            )

    def _check_shares(self, rows: IncomingRows) -> None:
        several = [watch.name for watch in self.rates if isinstance(watch, RegionWatch)]
        if rows.shares is not None and several and rows.known.any():
            raise ValueError(
                f"`{several[0]}` is about several shares, which are tested on labels of all rows "
                "or of equally many of each; leave label_shares out."
            )

    def _count(self, name: str, rows: IncomingRows) -> None:
        """Count the rows of one period."""
        period = self.history.open(name)
        if rows.clusters is not None:
            fresh = self.clusters.new(rows.clusters)
            self.clusters.left_out += int((~fresh).sum())
            rows = rows.rows(fresh)
        highest: dict[str, float] = {}
        random = self._random()
        size = len(rows) // (len(self.certificate.points) if self.certificate.outputs else 1)
        self.rows, period.rows = self.rows + size, period.rows + size
        singles = rows if rows.clusters is None else rows.rows(one_row_each(rows.clusters))
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
            cells, highest[each.name] = each.add(
                np.where(np.isnan(values), MISSING_FEATURE, values), random
            )
            self._note_cells(period, each, cells, None)
        self._count_labels(rows, period, highest)
        self._close(period, highest)

    def _note_cells(self, period: Period, watch: RankWatch, cells: Any, values: Any) -> None:
        if len(cells):
            period.add("cells", watch.name, cells)
        if values is not None and len(watch.edges):
            old = np.asarray(period.histogram) if period.histogram else 0.0
            period.histogram = (old + watch.histogram(values)).tolist()
        for old_period in self.history.periods[:-_RECENT]:
            old_period.histogram = []

    def _count_labels(self, rows: IncomingRows, period: Period, highest: dict[str, float]) -> None:
        """Give rows to the tests of rates, as far as their labels allow."""
        late, kept = rows.ids is not None and rows.clusters is None, []
        for watch in self.rates:
            found: IncomingRows | None = rows
            if watch.needs != "none" and not self.selection.direct(watch, rows, late=late):
                if rows.clusters is None:
                    kept.append(watch)
                    continue
                found = self.selection.with_shares(rows)
            if found is not None and (watch.needs == "none" or rows.known.any()):
                counts, highest[watch.name] = watch.add(found, period.name)
                period.add("rates", watch.name, counts)
        block = self.selection.add(rows, period.name, kept, late=late)
        if late:
            for dropped in self.pending.add(rows, block):
                self.selection.lose(*dropped)
        self._count_tallies(highest)

    def _count_tallies(self, highest: dict[str, float]) -> None:
        """Count blocks of rows whose labels have come."""
        for watch, name, tally in self.selection.release(self._labelled_rates):
            counts, log = watch.add_tally(tally)
            highest[watch.name] = max(log, highest.get(watch.name, -np.inf))
            self.history.find(name).add("rates", watch.name, counts)

    @property
    def _labelled_rates(self) -> list[RateWatch]:
        return [watch for watch in self.rates if watch.needs != "none"]

    @property
    def refused(self) -> dict[str, str]:
        """By test why it does not count the labels that are known."""
        found = {watch.name: self.selection.reason(watch) for watch in self._labelled_rates}
        return {name: why for name, why in found.items() if why is not None}

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
        self._check_shares(joined.rows)
        self.pending.forget(joined)
        for block in np.unique(joined.blocks):
            inside = np.flatnonzero(joined.blocks == block)
            part, ranks = joined.rows.rows(inside), joined.ranks[inside]
            self.selection.join(part, int(block), ranks, self._labelled_rates)
        highest: dict[str, float] = {}
        self._count_tallies(highest)
        if self.history.periods:
            self._close(self.history.periods[-1], highest)
        return self.status

    def _close(self, period: Period, highest: dict[str, float]) -> None:
        """Note the evidence, and alarms."""
        limits = self.limits
        for name, log in highest.items():
            if log >= limits[name] and name not in self.alarms:
                since = self.history.periods[self.change(name)].name.split(" to ")[0]
                self.alarms[name] = Alarm(name, period.name, since, log)
                self.history.kept |= {since}
        for name, test in self.tests.items():
            period.evidence[name] = test.log_evidence
        for watch in self.rates:
            interval = self.interval(watch)
            if interval is not None and watch.value is not None:
                period.intervals[watch.name] = list(interval)

    def _random(self) -> np.random.Generator:
        """For lots among equal scores and equal times: the same in every run."""
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
        free = all(watch.needs == "none" for watch in self.rates)
        return budget(self.false_alarm, kinds, labelled=free or self.labelled is not False)

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

    def interval(self, watch: RateWatch) -> tuple[float, float] | None:
        """The interval of a watched rate; those of all rates hold together, at all times."""
        return watch.interval(self.false_alarm / len(self.rates))

    def since(self, test: str) -> str:
        """The period with which the change that a test has found most likely began."""
        if test in self.alarms:
            return self.alarms[test].since
        return self.history.periods[self.change(test)].name.split(" to ")[0]

    def change(self, test: str) -> int:
        """The place of that period in the history."""
        if test in self.alarms:
            names = [period.name.split(" to ")[0] for period in self.history.periods]
            return names.index(self.alarms[test].since)
        counts = self.history.counts(self.tests[test].counted, test)
        return int(self.tests[test].change(counts)) if len(counts) else 0

    def counts_since(self, test: str) -> Floats:
        """What a test has counted since the change."""
        counts = self.history.counts(self.tests[test].counted, test)
        return np.asarray(counts[self.change(test) :].sum(0))

    def rate_since(self, test: str) -> tuple[float | None, tuple[float, float] | None]:
        """A certified rate since the change its test has found, with an interval.

        The interval holds for all periods that a change could begin with, but for ``false_alarm``.
        """
        watch, place = self.tests[test], self.change(test)
        counts, part = self.counts_since(test), self.false_alarm / len(self.rates) / 2
        part *= 1.0 if place == 0 else float(restart_weight(place))
        return watch.rate(counts), watch.interval_of(counts, part)

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
        self,
        scores: Any,
        labels: Any,
        *,
        groups: Any = None,
        clusters: Any = None,
        times: Any = None,
        amounts: Any = None,
        ids: Any = None,
        thresholds: Any = None,
        candidates: int | None = None,
        spend: float | None = None,
    ) -> Certificate:
        """A new certificate of the same goal from labelled rows, and a fresh watch over it.

        The ``r``-th recalibration may be wrong with probability ``(1 - confidence) / (r (r + 1))``:
        all of them together with no more than the first certificate. What is spent is kept in
        ``spent``, and what was seen before in ``history.earlier``. Pass rows that came after the
        alarm: rows that raised it were not drawn by chance.

        Args:
            scores: Labelled rows of the present.
            labels: 0 or 1 for each.
            groups: As for :func:`setpoint.certify`.
            clusters: The same.
            times: The same; rows that drift are not certified.
            amounts: The same; needed if the certificate is about costs by amounts.
            ids: The same; needed if the certificate breaks ties by lot.
            thresholds: To be proved on these rows, if the certificate is about given thresholds; by
                default those it has.
            candidates: Among how many models this one was chosen by looking at these rows; by
                default as many as at first.
            spend: The part of ``1 - confidence`` to use now, such as 1 / 12 for a window that
                rolls monthly over a year; by default as said above.

        Returns:
            The new certificate. If it is not certified, the monitor goes on with the old one.
        """
        given = {"groups": groups, "clusters": clusters, "times": times, "amounts": amounts}
        given["ids"] = ids
        return renew(self, scores, labels, spend, thresholds, candidates, given)

    def to_json(self) -> str:
        """The monitor with its certificate as JSON, with a checksum."""
        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        return from_json(cls, text)
