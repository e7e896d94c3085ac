"""What a check of new data found, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from setpoint._checks import share as check_share
from setpoint.certificates.dtypes import read_scores, rounded
from setpoint.certificates.evidence import Place
from setpoint.certificates.fixed_thresholds import excess
from setpoint.certificates.goals import Atom, Goal, atoms, read_goal
from setpoint.certificates.groups import split
from setpoint.certificates.records import CERTIFIED, Point
from setpoint.certificates.regions import Places, gather, largest
from setpoint.certificates.sample import EVERYONE, Part, Sample, read_labels, read_slices
from setpoint.certificates.statements import lookup, measured
from setpoint.certificates.tails import at_least, at_most, lower, upper
from setpoint.certificates.text import COLORS, OTHER, columns, share, table
from setpoint.rates import Bound, Where

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Certificate


OK, DRIFT, BROKEN = "ok", "drift", "broken"


@dataclass(frozen=True)
class Finding:
    """One comparison of new data with the certificate."""

    name: str
    expected: str
    measured: float | None
    chance: float | None
    """How likely chance alone is to do this or worse; None if only the alarm was computed."""
    alarm: bool


@dataclass(frozen=True)
class Check:
    """The verdict on new data: ``"ok"``, ``"drift"`` (of the alerts) or ``"broken"``."""

    verdict: str
    goal: str
    examples: int
    labelled: bool
    significance: float
    findings: tuple[Finding, ...]
    counted: str = "alerts"
    """What is counted without labels."""

    @property
    def exit_code(self) -> int:
        """0 if all is well, 1 if somebody should look."""
        return 0 if self.verdict == OK else 1

    def __bool__(self) -> bool:
        return self.verdict == OK

    def __str__(self) -> str:
        return "\n".join([self._headline(), *columns(self._rows())])

    def _repr_html_(self) -> str:
        color = COLORS[CERTIFIED] if self.verdict == OK else OTHER
        return table(self._headline(), color, self._rows())

    def _headline(self) -> str:
        words = {
            OK: "the promise fits the new data"
            if self.labelled
            else f"as many {self.counted} as expected",
            DRIFT: f"the share of {self.counted} is not that of the calibration data",
            BROKEN: "the new data contradict the promise",
        }
        return f"{self.verdict}: {words[self.verdict]} ({self.goal}; {self.examples:,} new rows)"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for finding in self.findings:
            seen = "undefined" if finding.measured is None else share(finding.measured)
            chance = "" if finding.chance is None else f"; chance {share(finding.chance)}"
            alarm = " - ALARM" if finding.alarm else ""
            yield finding.name, f"{seen} now, {finding.expected}{chance}{alarm}"
        yield "alarm", f"if chance alone would do this less often than {share(self.significance)}"


# Alerts now beside those at calibration: how often a decision is made, tested without labels.


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


# Does the promise still hold? New data against a certificate.
#
# The threshold is fixed by now, so counts of new examples are binomial and every test is exact.
# With labels, each promised bound is tested: it is *broken* if the new counts would be this bad
# with probability below ``significance`` were the bound still true. Without labels the share of
# alerts is compared with that of the calibration sample: given the alerts of both together, the new
# ones are hypergeometric; the binomial law used here is wider, so the alarm is never too quick. If
# another share of positives was declared, it is compared with what that share makes of the alerts
# in each class: it is drift if three bounds, on both classes and on the new alerts, leave a gap.


def check(
    certificate: Certificate, scores: Any, labels: Any, groups: Any, significance: float
) -> Check:
    """See :meth:`Certificate.check`."""
    level = check_share(significance, "significance", ends=False)
    goal, wheres = _goal(certificate)
    array = rounded(read_scores(scores)[0], certificate.dtype)
    y = None if labels is None else read_labels(labels, array)
    slices = read_slices(groups, wheres, array, empty=certificate.column is not None)
    sample = Sample(array, y, slices, certificate.dtype)
    places: dict[Where, Place] = {
        (() if p.group is None else ((str(certificate.column), p.group),)): Place(
            float(p.threshold)
        )
        for p in certificate.points
        if p.threshold is not None
    }
    alerts = [
        _alerts(p, w, places[w], sample) for p, w in zip(certificate.points, places, strict=True)
    ]
    found = alert_findings(certificate, alerts, level / len(alerts), alarms=y is None)
    found += _strangers(certificate, slices, len(array))
    verdict = DRIFT if any(f.alarm for f in found) else OK
    if y is not None:
        there = [bound for bound in goal if _present(bound, slices)]
        bounds = [a for bound in there for a in atoms(bound, certificate.prevalence)]
        at = lookup(places)
        tests = [
            _promise(a, sample, at, level / len(bounds), certificate.prevalence) for a in bounds
        ]
        verdict = BROKEN if any(f.alarm for f in tests) else verdict
        found = [*tests, *found]
    return Check(verdict, certificate.goal, len(array), y is not None, level, tuple(found))


def _goal(certificate: Certificate) -> tuple[tuple[Bound, ...], tuple[Where, ...]]:
    """The bounds of a certificate, of every group, and the slices they look at."""
    goal: Goal = read_goal(certificate.goal)
    if certificate.column is None:
        return goal.bounds, goal.wheres
    values = [point.group for point in certificate.points if point.group is not None]
    by_group = split(goal, certificate.column, values)
    bounds = [bound for each in by_group.goals.values() for bound in each.bounds]
    return (*bounds, *by_group.between), tuple(by_group.where(value) for value in values)


def _alerts(point: Point, where: Where, place: Place, sample: Sample) -> Alerts:
    part = Part(where, EVERYONE)
    name = "alerts" if not where else f"alerts, {where[0][0]} = {where[0][1]!r}"
    now = (int(sample.over(part, place.score)), sample.size(part))
    return Alerts(name, (point.alerts, point.examples), now)


def _present(bound: Bound, slices: Mapping[Where, Any]) -> bool:
    """Whether there are rows of every group that a bound is about."""
    wheres = {rate.where for rate in bound.expression.rates()} - {()}
    return all(slices[where].any() for where in wheres)


def _strangers(certificate: Certificate, slices: Mapping[Where, Any], count: int) -> list[Finding]:
    """Rows of groups that have no threshold: nobody promised anything about them."""
    if certificate.column is None or not slices:
        return []
    strangers = count - int(sum(inside.sum() for inside in slices.values()))
    if not strangers:
        return []
    name = f"rows of another {certificate.column}"
    return [Finding(name, "none: they have no threshold", strangers / count, None, True)]


def _promise(
    atom: Atom, sample: Sample, places: Places, significance: float, prevalence: float | None
) -> Finding:
    """Test one promised inequality at its fixed thresholds."""
    chance = None
    if atom.share is None:
        turned, level = excess(atom)
        known, apart = gather(turned, sample, places, prevalence)
        alarm = -largest(-turned, known, significance, prevalence, apart) > level
    else:
        where = atom.share.part.where
        count, n = atom.share.counts(sample.table(where, places(where).score, None))
        tail = at_least if atom.share.at_most else at_most
        chance = float(tail(count, n, atom.share.limit)) if n else 1.0
        alarm = chance < significance
    value = measured(atom.bound.expression, sample, places, prevalence)
    return Finding(str(atom.bound), "promised for all data", value, chance, alarm)
