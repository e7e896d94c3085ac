"""Promises of a classifier of several classes at shifts that were fixed on other data."""

from setpoint.certify.classes.cautious import shifts_to_prove
from setpoint.certify.classes.certificate import NO_CERTIFICATE, ClassCertificate
from setpoint.certify.classes.prove import certify_shifts, unprovable

__all__ = ["NO_CERTIFICATE", "ClassCertificate", "certify_shifts", "shifts_to_prove", "unprovable"]
