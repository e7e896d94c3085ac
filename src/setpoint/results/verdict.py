"""What a certificate says, read from its plain dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from setpoint._checks import is_number

Status = Literal["certified", "not certified", "infeasible", "no certificate"]
KNOWN: tuple[Status, ...] = ("certified", "not certified", "infeasible", "no certificate")


@dataclass(frozen=True)
class Verdict:
    """The part of a certificate that a reader needs; lists are empty where it says nothing."""

    status: Status
    confidence: float
    guarantee: str = "pac"
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    proved: Mapping[str, float] = field(default_factory=dict)  # by bound, as it is written


def read_verdict(certificate: Mapping[str, Any] | None) -> Verdict:
    """Read a certificate's dict; what is missing is missing, but an unknown status is an error.

    Example:
        >>> read_verdict({"status": "certified", "confidence": 0.9}).confidence
        0.9
        >>> read_verdict(None).status
        'no certificate'
    """
    if certificate is None:
        return Verdict("no certificate", 0.95)
    given = str(certificate.get("status", "")).replace("_", " ")
    status = next((known for known in KNOWN if known == given), None)
    if status is None:
        raise ValueError(f"A certificate's status is one of {', '.join(KNOWN)}; got {given!r}.")
    return Verdict(
        status,
        float(certificate.get("confidence") or 0.95),
        str(certificate.get("guarantee") or "pac"),
        _sentences(certificate.get("notes")),
        _sentences(certificate.get("assumptions")),
        _sentences(certificate.get("advice")),
        _proved(certificate.get("claims")),
    )


def _sentences(found: object) -> tuple[str, ...]:
    if isinstance(found, str):
        return (found,) if found else ()
    return tuple(map(str, found)) if isinstance(found, Sequence) else ()


def _proved(claims: object) -> dict[str, float]:
    """What is proved for each bound."""
    rows = claims if isinstance(claims, Sequence) and not isinstance(claims, str) else ()
    known = (row for row in rows if isinstance(row, Mapping) and is_number(row.get("proved")))
    return {str(row.get("bound")): float(row["proved"]) for row in known}
