"""What a certificate says, read from its plain dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["certified", "not certified", "infeasible", "no certificate"]
KNOWN: tuple[Status, ...] = ("certified", "not certified", "infeasible")


@dataclass(frozen=True)
class Verdict:
    """The part of a certificate that a reader needs; lists are empty where it says nothing."""

    status: Status
    confidence: float
    guarantee: str = "pac"
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


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
        _sentences(certificate, "reasons", "reason"),
        _sentences(certificate, "assumptions"),
        _sentences(certificate, "what_would_change", "changes", "would_change"),
    )


def _sentences(certificate: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """The first of ``names`` that is there, as sentences."""
    found = next((certificate[name] for name in names if certificate.get(name)), ())
    if isinstance(found, str):
        return (found,)
    return tuple(map(str, found)) if isinstance(found, Sequence) else ()
