"""Certificates: thresholds with finite-sample guarantees. Needs numpy and scipy alone."""

from setpoint.certificates.certificate import Certificate, Claim, Estimate, Point
from setpoint.certificates.certification import certify
from setpoint.certificates.classes import (
    ClassCertificate,
    certify_shifts,
    shifts_to_prove,
    why_unprovable,
)
from setpoint.certificates.drift import Check, Finding
from setpoint.certificates.goals import CannotPromise, inequalities, read_goal
from setpoint.certificates.regions import interval_at, is_plain_share

__all__ = [
    "CannotPromise",
    "Certificate",
    "Check",
    "Claim",
    "ClassCertificate",
    "Estimate",
    "Finding",
    "Point",
    "certify",
    "certify_shifts",
    "inequalities",
    "interval_at",
    "is_plain_share",
    "read_goal",
    "shifts_to_prove",
    "why_unprovable",
]
