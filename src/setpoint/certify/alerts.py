"""Alerts now beside those at calibration: how often a decision is made, tested without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from setpoint.certify.records import Point
from setpoint.certify.tails import at_least, at_most, lower, upper
from setpoint.certify.text import share
from setpoint.certify.verdicts import Finding

if TYPE_CHECKING:
    from setpoint.certify.certificate import Certificate


@dataclass(frozen=True)
class Alerts:
    """How many of how many were decided so, at calibration and now."""

    name: str
    before: tuple[int, int]
    now: tuple[int, int]


def alert_findings(
    certificate: Certificate, alerts: list[Alerts], significance: float, alarms: bool
) -> list[Finding]:
    """Alerts now beside those to be expected; with labels they are shown, not tested."""
    prior = certificate.prevalence
    if prior is None:
        return [alert_finding(each, significance, alarms) for each in alerts]
    pairs = zip(certificate.points, alerts, strict=True)
    found = [_declared_finding(point, each, prior, significance) for point, each in pairs]
    return [replace(each, alarm=each.alarm and alarms) for each in found]


def alert_finding(alerts: Alerts, significance: float, alarms: bool) -> Finding:
    """A decision now beside how often it was made at calibration."""
    (k, n), (new, size) = alerts.before, alerts.now
    chance = _two_sided(new, size, k, n)
    expected = f"{share(k / n)} of {n:,} at calibration" if n else "none at calibration"
    measured = new / size if size else None
    return Finding(alerts.name, expected, measured, chance, alarms and chance < significance)


def _declared_finding(point: Point, alerts: Alerts, prior: float, significance: float) -> Finding:
    """The alerts beside those that the declared share of positives makes expect."""
    positives, hits = point.positives or 0, point.true_alerts or 0
    classes = (
        (prior, hits, positives),
        (1 - prior, point.alerts - hits, point.examples - positives),
    )
    tail, (new, size) = significance / 6, alerts.now  # three bounds on either side
    low = sum(weight * float(lower(k, n, tail)) for weight, k, n in classes)
    high = sum(weight * float(upper(k, n, tail)) for weight, k, n in classes)
    expected = f"{share(low)} to {share(high)} expected where {share(prior)} are positive"
    alarm = float(lower(new, size, tail)) > high or float(upper(new, size, tail)) < low
    return Finding(alerts.name, expected, new / size if size else None, None, alarm)


def _two_sided(new: int, size: int, k: int, n: int) -> float:
    """How likely ``new`` of ``size`` and ``k`` of ``n`` differ that much if nothing changed."""
    if 2 * (new + k) > size + n:  # the rarer outcome is nearer to the binomial law
        new, k = size - new, n - k
    total, part = new + k, size / (size + n)
    tail = min(float(at_least(new, total, part)), float(at_most(new, total, part)))
    return min(1.0, 2 * tail)
