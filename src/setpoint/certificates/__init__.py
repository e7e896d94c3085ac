"""Certificates: thresholds with finite-sample guarantees. Needs numpy and scipy alone."""

from setpoint.certificates.certificate import Certificate
from setpoint.certificates.certification import certify
from setpoint.certificates.classes import ClassCertificate, certify_shifts, shifts_to_prove
from setpoint.certificates.drift import Check, Finding
from setpoint.certificates.records import CannotPromise, Claim, Estimate, Point

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
    "shifts_to_prove",
]
