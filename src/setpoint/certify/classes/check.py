"""Does the promise about several classes still hold on new data?

The shifts are fixed, so all counts are binomial and every test is exact. With labels each promised
share is tested; without, how often each class is predicted is compared with the calibration data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._checks import share as check_share
from setpoint.batch import check_scores
from setpoint.certify.alerts import Alerts, alert_finding
from setpoint.certify.classes.counted import counted
from setpoint.certify.verdicts import BROKEN, DRIFT, OK, Check, Finding
from setpoint.problems import Problem
from setpoint.problems.classes import decide
from setpoint.problems.inputs import to_numpy

if TYPE_CHECKING:
    from setpoint.certify.classes.certificate import ClassCertificate

COUNTED = "predictions of each class"


def check_classes(
    certificate: ClassCertificate, scores: Any, labels: Any, groups: Any, significance: float
) -> Check:
    """See :meth:`ClassCertificate.check`."""
    level = check_share(significance, "significance", ends=False)
    if certificate.exit_code:
        why = certificate.notes[0]
        raise ValueError(f"There is no promise to check, the goal is {certificate.status}: {why}.")
    found = _scores(certificate, scores)
    promises: list[Finding] = []
    if labels is not None:
        promises = _promises(certificate, found, labels, groups, level)
    decided = np.bincount(decide(found, certificate.shifts), minlength=len(certificate.classes))
    pairs = zip(certificate.classes, certificate.predicted, decided.tolist(), strict=True)
    shares = [
        alert_finding(
            Alerts(f"predicted {name!r}", (before, certificate.examples), (now, len(found))),
            level / len(decided),
            alarms=not promises,  # where a promise is tested, it is what counts
        )
        for name, before, now in pairs
    ]
    verdict = DRIFT if any(finding.alarm for finding in shares) else OK
    verdict = BROKEN if any(finding.alarm for finding in promises) else verdict
    told = (certificate.goal, len(found), bool(promises), level, (*promises, *shares))
    return Check(verdict, *told, counted=COUNTED)


def _scores(certificate: ClassCertificate, scores: Any) -> Any:
    found = to_numpy(scores, "scores")
    if found.ndim != 2 or found.shape[1] != len(certificate.classes):
        raise ValueError(
            f"The certificate is about {len(certificate.classes)} classes: scores are "
            f"[n, {len(certificate.classes)}]; got the shape {found.shape}."
        )
    check_scores(found)
    return found


def _promises(
    certificate: ClassCertificate, scores: Any, labels: Any, groups: Any, level: float
) -> list[Finding]:
    """A test of every promised share; none if nothing was promised."""
    if not certificate.certified:
        return []
    problem = Problem.parse(certificate.goal)
    given = {"classes": certificate.classes, "groups": groups}
    found = counted(problem, scores, labels, certificate.shifts, **given)
    shares = [one for each in found.values() for one in each]
    return [
        Finding(
            str(one), "promised for all data", one.measured, chance, chance < level / len(shares)
        )
        for one in shares
        for chance in (one.chance(),)
    ]
