"""False alarms and delays of every test, by simulation with known truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.monitoring.streams import daily_check, first_alarms
from setpoint.certificates import certify
from setpoint.certificates.drift import chance_of_difference
from setpoint.certificates.polya_urn import RankCells, alert_evidence, rank_evidence
from setpoint.monitoring.false_alarm_budget import LABELLED

FALSE_ALARM = 0.05
RATES = {  # limit, relevant rows of 1,000,000 rows where a tenth is positive
    "fpr <= 0.01": (0.01, 900_000),
    "fpr <= 0.001": (0.001, 900_000),
    "recall >= 0.95": (0.05, 100_000),
    "precision >= 0.9": (0.10, 100_000),
}
PARTS = {"rates alone": 1.0, "all tests": LABELLED["rates"]}
"""The part of the false alarms that one certified rate has."""


def false_alarms(streams: int, shrink: int) -> dict[str, Any]:
    """The share of streams that ever alarm although every rate is exactly at its limit."""
    found: dict[str, Any] = {}
    for name, (limit, rows) in RATES.items():
        for every in (1, 100, 1000):
            random = np.random.default_rng([1, every])
            alarms = first_alarms(
                random, streams, rows // shrink, limit, math.log(1 / FALSE_ALARM),
                [(np.inf, limit)], every,
            )  # fmt: skip
            found[f"{name}, look after every {every}"] = float(np.isfinite(alarms).mean())
    random = np.random.default_rng(2)
    five = [
        first_alarms(
            random, streams, 180_000 // shrink, 0.01, math.log(5 / FALSE_ALARM), [(np.inf, 0.01)]
        )
        for _ in range(5)
    ]
    found["fpr <= 0.01 in 5 groups"] = float(np.isfinite(np.min(five, axis=0)).mean())
    return found


def label_free_false_alarms(streams: int, shrink: int) -> dict[str, Any]:
    """The same for alerts and for ranks of scores, the reference drawn anew for each stream."""
    found = {}
    for name, (n, share, of_negatives, ties) in {
        "alerts, threshold at a rank of all": (5_000, 0.05, False, 0),
        "alerts, threshold at a rank of negatives": (5_000, 0.01, True, 0),
        "alerts, scores of 20 values": (5_000, 0.05, False, 20),
    }.items():
        random = np.random.default_rng(3)
        hits = [
            _alert_stream(random, n, share, of_negatives, ties, 1_000_000 // shrink)
            for _ in range(streams)
        ]
        found[name] = float(np.mean(hits))
    for name, ties in (("ranks", 0), ("ranks, scores of 20 values", 20)):
        random = np.random.default_rng(4)
        few = max(20, streams // 5)
        hits = [_rank_stream(random, 5_000, ties, 200_000 // shrink) for _ in range(few)]
        found[name] = float(np.mean(hits))
    return found


def _draw(random: np.random.Generator, n: int, ties: int, positives: float = 0.1) -> Any:
    labels = random.random(n) < positives
    scores = random.normal(size=n) + 2 * labels
    return (np.round(scores * ties / 8) if ties else scores), labels


def _alert_stream(
    random: np.random.Generator, n: int, share: float, of_negatives: bool, ties: int, rows: int
) -> bool:
    scores, labels = _draw(random, n, ties)
    ranked = np.sort(scores[~labels] if of_negatives else scores)[::-1]
    threshold = ranked[int(share * len(ranked))]
    urn = alert_evidence(float((scores > threshold).sum()), n, FALSE_ALARM)
    assert urn is not None
    truth = _alert_share(threshold, ties)
    cuts = urn.evidence.pieces(rows)
    alerts = random.binomial(np.diff(cuts), truth)
    counts = np.stack([np.diff(cuts) - alerts, alerts], 1).astype(float)
    return bool(urn.add_counts(cuts, counts).max() >= math.log(1 / FALSE_ALARM))


def _alert_share(threshold: float, ties: int, positives: float = 0.1) -> float:
    """The true share of alerts."""
    edge = (threshold + 0.5) * 8 / ties if ties else threshold
    return float((1 - positives) * norm.sf(edge) + positives * norm.sf(edge - 2))


def _rank_stream(random: np.random.Generator, n: int, ties: int, rows: int) -> bool:
    cells = RankCells.of(_draw(random, n, ties)[0], random)
    places = cells.cells(_draw(random, rows, ties)[0], random)
    return bool(rank_evidence(cells.balls).add(places).max() >= math.log(1 / FALSE_ALARM))


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
        random = np.random.default_rng(8)
        for _ in range(streams if factor > 1 else max(2, streams // 3)):
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
        monitor.update(np.where(alert, threshold + (1 - threshold) * within, threshold * within))
        alerts.append(int(alert.sum()))
        when = min(when, math.inf if monitor else day + 1.0)
    chance = np.array([chance_of_difference(k, per_day, m, n) for k in alerts])
    levels = {"0.001": 0.001, "5 % a year": 0.05 / 365}
    checks = {f"daily check, {name}": _day(chance < level) for name, level in levels.items()}
    return {"monitor": when, **checks}


def _day(alarms: Any) -> float:
    return float(np.argmax(alarms) + 1) if alarms.any() else math.inf
