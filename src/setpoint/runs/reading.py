"""Certificate and history of a run folder, validated. Never torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from setpoint.certificates import Certificate
from setpoint.certificates.classes import ClassCertificate
from setpoint.results import ClassRun, RunResult
from setpoint.runs.errors import RunError
from setpoint.runs.folder import CERTIFICATE, HISTORY
from setpoint.runs.manifest import Manifest, read_digested
from setpoint.runs.result import result_of
from setpoint.runs.scores import read_scores

Kind = TypeVar("Kind", Certificate, ClassCertificate)


def read_certificate(folder: Path, manifest: Manifest) -> Certificate:
    """certificate.json of a run about two classes."""
    return parse_certificate(folder / CERTIFICATE, read_digested(folder, manifest, CERTIFICATE))


def read_promise(folder: Path, manifest: Manifest) -> Certificate | ClassCertificate:
    """certificate.json of any run."""
    read = read_class_certificate if manifest.classes else read_certificate
    return read(folder, manifest)


def read_class_certificate(folder: Path, manifest: Manifest) -> ClassCertificate:
    """certificate.json of a run about several classes, those of run.json."""
    path = folder / CERTIFICATE
    found = _parsed(ClassCertificate, path, read_digested(folder, manifest, CERTIFICATE))
    if found.classes != manifest.classes or found.goal != manifest.goal:
        raise RunError(f"{path} does not belong to run.json: it is of other classes.")
    return found


def parse_certificate(path: Path, content: bytes) -> Certificate:
    """A certificate from a file nobody vouches for."""
    return _parsed(Certificate, path, content)


def _parsed(kind: type[Kind], path: Path, content: bytes) -> Kind:
    try:
        return kind.from_json(content.decode())
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        why = " ".join(str(error).split())[:200]
        raise RunError(f"{path} is not a certificate that setpoint wrote: {why}") from None


def read_history(folder: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """history.jsonl of a run, one dict an epoch."""
    lines = read_digested(folder, manifest, HISTORY).decode().splitlines()
    try:
        history = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        raise RunError(f"{folder / HISTORY} is damaged; train again.") from None
    if not all(isinstance(entry, dict) for entry in history):
        raise RunError(f"{folder / HISTORY} is damaged; train again.")
    return history


def read_result(folder: Path, manifest: Manifest) -> RunResult | ClassRun:
    """All of a run that the report draws."""
    splits, baseline = read_scores(folder, manifest)
    theirs = None if baseline is None else {name: pair[0] for name, pair in baseline.items()}
    promise = read_promise(folder, manifest)
    return result_of(manifest, promise, read_history(folder, manifest), splits, theirs)
