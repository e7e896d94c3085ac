"""The plain values that a certificate is made of."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.rates import Value

CERTIFIED, NOT_CERTIFIED, INFEASIBLE = "certified", "not certified", "infeasible"
STATUSES = (CERTIFIED, NOT_CERTIFIED, INFEASIBLE)


class CannotPromise(ValueError):
    """A goal or data of which nothing can be proved, whatever the scores are."""


@dataclass(frozen=True)
class Claim:
    """One bound: what was measured of it, what is proved, and from which counts."""

    bound: str
    measured: float | None
    proved: float | None
    counts: str


@dataclass(frozen=True)
class Estimate:
    """A rate at the threshold, with bounds from below and above at the certificate's confidence."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """One threshold and the counts at it.

    The threshold is None if there is none, and minus infinity to accept all. Without labels, the
    number of positives is unknown.
    """

    group: Value | None
    threshold: float | None
    examples: int
    positives: int | None
    alerts: int
    true_alerts: int | None
