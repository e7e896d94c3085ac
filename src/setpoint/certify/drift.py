"""Does the promise still hold? New data against a certificate.

The threshold is fixed by now, so counts of new examples are binomial and every test is exact.
With labels, each promised bound is tested: it is *broken* if the new counts would be this bad with
probability below ``significance`` were the bound still true. Without labels the share of alerts is
compared with that of the calibration sample: given the alerts of both together, the new ones are
hypergeometric; the binomial law used here is wider, so the alarm is never too quick. If another
share of positives was declared, it is compared with what that share makes of the alerts in each
class: it is drift if three bounds, on both classes and on the new alerts, leave a gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from setpoint._checks import share as check_share
from setpoint.certify.alerts import Alerts, alert_findings
from setpoint.certify.assemble import lookup, measured
from setpoint.certify.dtypes import read_scores, rounded
from setpoint.certify.fixed import excess
from setpoint.certify.forms import Atom, atoms
from setpoint.certify.goals import Goal, read_goal
from setpoint.certify.groups import split
from setpoint.certify.parts import EVERYONE, Part
from setpoint.certify.places import Place
from setpoint.certify.ranges import Places, gather, largest
from setpoint.certify.reading import read_labels, read_slices
from setpoint.certify.records import Point
from setpoint.certify.samples import Sample
from setpoint.certify.tails import at_least, at_most
from setpoint.certify.verdicts import BROKEN, DRIFT, OK, Check, Finding
from setpoint.rates import Bound, Where

if TYPE_CHECKING:
    from setpoint.certify.certificate import Certificate


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
