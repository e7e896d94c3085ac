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
from setpoint.certificates.goals import CannotPromise, goal_to_certify, inequalities
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
    "goal_to_certify",
    "inequalities",
    "interval_at",
    "is_plain_share",
    "shifts_to_prove",
    "why_unprovable",
]
