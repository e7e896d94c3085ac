"""Promises of a classifier of several classes at shifts that were fixed on other data."""

from setpoint.certify.classes.certificate import ClassCertificate
from setpoint.certify.classes.prove import certify_shifts

__all__ = ["ClassCertificate", "certify_shifts"]
