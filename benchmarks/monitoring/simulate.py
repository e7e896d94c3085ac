"""False alarms and delays of every test, by simulation with known truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import beta, norm

from benchmarks.monitoring.streams import daily_check, first_alarms
from benchmarks.monitoring.urn_streams import urn_alarms
from setpoint.certificates import certify
from setpoint.certificates.drift import chance_of_difference
from setpoint.certificates.polya_urn import RankCells, rank_evidence
from setpoint.monitoring.budgets import LABELLED
from setpoint.monitoring.watched_scores import alert_watches

FALSE_ALARM = 0.05
RATES = {  # limit, relevant rows of 1,000,000 rows where a tenth is positive
    "fpr <= 0.01": (0.01, 900_000),
    "fpr <= 0.001": (0.001, 900_000),
    "recall >= 0.95": (0.05, 100_000),
    "precision >= 0.9": (0.10, 100_000),
}
CERTIFICATES = (  # the goal, and how many values scores have (0: no ties)
    ("fpr <= 0.01", 0),
    ("fpr <= 0.001", 0),
    ("recall >= 0.95", 0),
    ("precision >= 0.9", 0),
    ("fpr <= 0.05", 20),
)
BATCH = 20
"""Streams without labels between two results."""
LOOKS = (1, 100, 1000)
"""After how many rows one looks: every row, every 100, every day."""
PARTS = {"rates alone": 1.0, "all tests": LABELLED["rates"]}
"""The part of the false alarms that one certified rate has."""


def false_alarms(streams: int, shrink: int) -> dict[str, Any]:
    """The share of streams that ever alarm although every rate is exactly at its limit."""
    found: dict[str, Any] = {}
    for name, (limit, rows) in RATES.items():
        for every in LOOKS:
            random = np.random.default_rng([1, every])
            alarms = first_alarms(
                random, streams, rows // shrink, limit, math.log(1 / FALSE_ALARM),
                [(np.inf, limit)], every,
            )  # fmt: skip
            found[f"{name}, look after every {every}"] = alarmed(alarms)
    random = np.random.default_rng(2)
    five = [
        first_alarms(
            random, streams, 180_000 // shrink, 0.01, math.log(5 / FALSE_ALARM), [(np.inf, 0.01)]
        )
        for _ in range(5)
    ]
    found["fpr <= 0.01 in 5 groups, look after every 1"] = alarmed(np.min(five, axis=0))
    return found


def label_free_false_alarms(
    streams: int, shrink: int, known: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """The same without labels, each stream with its own certificate; after every batch so far.

    Args:
        streams: How many in all.
        shrink: By what the length of streams is divided.
        known: An earlier result with fewer streams, to be gone on with.
    """
    rows, done, hits = 1_000_000 // shrink, 0, Counter[str]()
    if known and known.get("rows") == rows:
        done, hits = known["streams"], Counter(known["hits"])
    for batch in range(done, streams, BATCH):
        for name, draw in _label_free_settings(min(BATCH, streams - batch), rows).items():
            first = draw(np.random.default_rng([3, batch]))
            for every, column in zip(LOOKS, first.T, strict=True):
                hits[f"{name}, look after every {every}"] += int(np.isfinite(column).sum())
        done = min(batch + BATCH, streams)
        shares = {key: share_of(count, done) for key, count in hits.items()}
        yield {"streams": done, "rows": rows, "hits": dict(hits), **shares}


def _label_free_settings(streams: int, rows: int) -> dict[str, Any]:
    """By name a function that draws streams and returns their first alarms ``[streams, looks]``."""
    found: dict[str, Any] = {}
    for goal, ties in CERTIFICATES:
        name = f"alerts, {goal}" + (f", scores of {ties} values" if ties else "")
        found[name] = partial(_alert_alarms, streams, goal, 5_000, ties, rows, 1)
    found["alerts of 5 groups"] = lambda random: np.min(
        [_alert_alarms(streams, "fpr <= 0.05", 1_000, 0, rows // 5, 5, random) for _ in range(5)],
        axis=0,
    )
    found["ranks"] = partial(_rank_alarms, streams, 5_000, 0, rows)
    found["ranks, scores of 20 values"] = partial(_rank_alarms, streams, 5_000, 20, rows)
    return found


def share_of(hits: int, streams: int) -> list[float]:
    """The share of streams that alarm, and its 95 % interval (Clopper and Pearson)."""
    low, high = beta.ppf([0.025, 0.975], [hits, hits + 1], [streams - hits + 1, streams - hits])
    low, high = 0.0 if hits == 0 else low, 1.0 if hits == streams else high
    return [hits / streams, float(low), float(high)]


def alarmed(first: Any) -> list[float]:
    """The same from the first alarm of each stream; infinity if there is none."""
    return share_of(int(np.isfinite(first).sum()), len(first))


def _draw(random: np.random.Generator, n: int, ties: int, positives: float = 0.1) -> Any:
    labels = random.random(n) < positives
    scores = random.normal(size=n) + 2 * labels
    return (np.round(scores * ties / 8) if ties else scores), labels


def _share_above(edge: Any, positives: float = 0.1) -> Any:
    """The true share of scores above an edge, before they are rounded."""
    return (1 - positives) * norm.sf(edge) + positives * norm.sf(edge - 2)


def _alert_alarms(
    streams: int, goal: str, n: int, ties: int, rows: int, groups: int, random: np.random.Generator
) -> Any:
    """First alarms of the share of alerts ``[streams, looks]``, each with its own certificate."""
    found: list[list[float]] = []
    while len(found) < streams:
        certificate = certify(*_draw(random, n, ties), goal)
        if not certificate:
            continue
        (watch,) = alert_watches(certificate)
        watch.expect(FALSE_ALARM / groups)
        assert watch.urn is not None
        edge = (np.floor(certificate.threshold) + 0.5) * 8 / ties if ties else certificate.threshold
        alerts = (random.random(rows) < _share_above(edge)).astype(np.uint8)
        found.append(urn_alarms(watch.urn, alerts, groups / FALSE_ALARM, LOOKS))
    return np.array(found)


def _rank_alarms(streams: int, n: int, ties: int, rows: int, random: np.random.Generator) -> Any:
    """First alarms of the ranks of scores ``[streams, looks]``, each with its own reference."""
    found = []
    for _ in range(streams):
        cells = RankCells.of(_draw(random, n, ties)[0], random)
        drawn = np.searchsorted(_share_below(cells, ties), random.random(rows)).astype(np.uint8)
        found.append(urn_alarms(rank_evidence(cells.balls), drawn, 1 / FALSE_ALARM, LOOKS))
    return np.array(found)


def _share_below(cells: RankCells, ties: int) -> Any:
    """The true share of scores below each border; equal ones are below it by lot."""
    if not ties:
        return 1 - _share_above(cells.borders)
    low, high = (1 - _share_above((cells.borders + half) * 8 / ties) for half in (-0.5, 0.5))
    return low + cells.lots * (high - low)


def delays(streams: int) -> dict[str, Any]:
    """The median number of negatives until an alarm, for a promise of 1 %."""
    found: dict[str, Any] = {}
    for share in (0.012, 0.0125, 0.015, 0.02, 0.03):
        for name, part in PARTS.items():
            random = np.random.default_rng(5)
            alarm = math.log(1 / FALSE_ALARM / part)
            first = first_alarms(random, streams, 120_000, 0.01, alarm, [(np.inf, share)])
            found[f"monitor, {name} | {share:g}"] = _median(first)
            first = first_alarms(
                random, streams // 4, 220_000, 0.01, alarm, [(99_900, 0.007), (np.inf, share)]
            )
            after = np.where(first > 99_900, first - 99_900, np.nan)
            found[f"monitor, {name}, after 100,000 good ones | {share:g}"] = _median(after)
        for name, level in (("0.001", 0.001), ("Bonferroni, a year", 0.05 / 365)):
            random = np.random.default_rng(6)
            first = daily_check(random, streams, 365, 1000, 0.01, share, level)
            found[f"daily check of 1,000, {name} | {share:g}"] = _median(first)
    for name, level in (("0.001", 0.001), ("Bonferroni, a year", 0.05 / 365)):
        first = daily_check(np.random.default_rng(7), 4 * streams, 365, 1000, 0.01, 0.01, level)
        found[f"daily check of 1,000, {name} | false alarms a year"] = float(
            np.isfinite(first).mean()
        )
    return found


def _median(first: Any) -> list[float | None]:
    """The share of streams that alarm, and the median over all of them."""
    known = first[~np.isnan(first)]
    middle = float(np.median(known))
    return [float(np.isfinite(known).mean()), middle if np.isfinite(middle) else None]


def label_free_delays(streams: int) -> dict[str, Any]:
    """Days until the share of alerts is seen to have risen, without labels: the monitor itself.

    5 % alerts at calibration, all tests on. The daily check compares a day with the calibration
    sample at 0.001, or at 5 % a year.
    """
    found: dict[str, Any] = {}
    cases = [(1.3, 500, 60, n) for n in (5_000, 20_000)]
    cases += [(1.15, 5_000, 60, n) for n in (5_000, 10_000, 20_000)] + [(1.0, 5_000, 365, 5_000)]
    for factor, per_day, days, n in cases:
        first: dict[str, list[float]] = {}
        random = np.random.default_rng(20)
        for _ in range(streams if factor > 1 else max(2, streams // 5)):
            for way, day in _label_free_stream(random, factor, per_day, days, n).items():
                first.setdefault(way, []).append(day)
        for way, when in first.items():
            key = f"{way} | x {factor:g}, {per_day:,} a day, {n:,} calibration rows"
            found[key] = _median(np.array(when))
    return found


def _label_free_stream(
    random: np.random.Generator, factor: float, per_day: int, days: int, n: int
) -> dict[str, float]:
    """The day of the first alarm by each way; only the share of alerts changes."""
    scores, m = random.random(n), round(0.05 * n)
    threshold = float(np.sort(scores)[-m - 1])
    certificate = certify(scores, random.random(n) < 0.1, "fpr <= 0.2", thresholds=threshold)
    monitor = certificate.monitor(FALSE_ALARM)
    alerts, when = [], math.inf
    for day in range(days):
        alert = random.random(per_day) < factor * (1 - threshold)
        within = random.random(per_day)
        if monitor:
            scores = np.where(alert, threshold + (1 - threshold) * within, threshold * within)
            monitor.update(scores)
            when = math.inf if monitor else day + 1.0
        alerts.append(int(alert.sum()))
    chance = np.array([chance_of_difference(k, per_day, m, n) for k in alerts])
    levels = {"0.001": 0.001, "5 % a year": 0.05 / 365}
    checks = {f"daily check, {name}": _day(chance < level) for name, level in levels.items()}
    return {"monitor": when, **checks}


def _day(alarms: Any) -> float:
    return float(np.argmax(alarms) + 1) if alarms.any() else math.inf
