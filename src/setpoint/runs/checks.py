"""What ``setpoint check`` found, check by check, in a file of JSON lines beside the certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._files import only_one, write_file
from setpoint.runs.folder import LARGEST_JSON, RunError

if TYPE_CHECKING:
    from setpoint.certificates import Certificate, ClassCertificate
    from setpoint.certificates.drift import Check

_FORMAT = "setpoint check 1"
_KINDS = {"when": str, "file": str, "verdict": str, "examples": int, "findings": list}


def history_file(certificate: Path) -> Path:
    """Where checks of a certificate (or of a run folder) are noted: ``c.checks.jsonl``."""
    path = certificate.resolve()
    return path.with_name(f"{path.stem}.checks.jsonl")


def note_check(
    path: Path, found: Check, certificate: Certificate | ClassCertificate, file: str
) -> list[dict[str, Any]]:
    """Add a check to the history in ``path`` and return all of them that are of this certificate.

    The file is replaced in one step; only one program writes it at a time.

    Raises:
        RunError: The file is something else.
        OutputError: Another program is writing it.
    """
    entry = {
        "format": _FORMAT,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "file": file,
        "certificate": json.loads(certificate.to_json())["checksum"],
        **asdict(found),
    }
    with only_one(path):
        begun = path.exists()
        entries = [*read_checks(path), entry]
        lines = (json.dumps(each, allow_nan=False) for each in entries)
        write_file(path, "".join(f"{line}\n" for line in lines).encode(), force=begun)
    return [each for each in entries if each.get("certificate") == entry["certificate"]]


def read_checks(path: Path) -> list[dict[str, Any]]:
    """All checks in a file, from the first to the last; none if there is no such file.

    Raises:
        RunError: The file is something else.
    """
    if not path.exists():
        return []
    if not path.is_file() or path.stat().st_size > LARGEST_JSON:
        raise RunError(f"{path} is no history of checks; name another file.")
    try:
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, RecursionError):
        entries = [None]
    if not all(map(_is_entry, entries)):
        raise RunError(f"{path} is no history that `setpoint check` wrote; name another file.")
    return entries


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, Mapping) or entry.get("format") != _FORMAT:
        return False
    findings = entry.get("findings", None)
    return all(type(entry.get(name)) is kind for name, kind in _KINDS.items()) and all(
        isinstance(each, Mapping)
        and isinstance(each.get("name"), str)
        and isinstance(each.get("measured"), (int, float, type(None)))
        for each in findings
    )
