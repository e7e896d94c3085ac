"""Certificate and history of a run folder, validated. Never torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from setpoint.axes.class_choice import best_shifts
from setpoint.certificates import Certificate, ClassCertificate
from setpoint.problems import Problem
from setpoint.results import ClassRun, RunResult
from setpoint.runs.folder import CERTIFICATE, HISTORY, RunError
from setpoint.runs.manifest import Manifest, read_digested
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


# ------------------------------------------------------------------------------------------------
# A run as the plain data that the report draws. Never torch.


Parts = Mapping[str, Any]


def result_of(
    manifest: Manifest,
    certificate: Any,
    history: list[dict[str, Any]],
    splits: Parts,
    baseline: Parts | None,
) -> RunResult | ClassRun:
    """The result of a run; ``baseline`` holds scores on the same rows, by part."""
    told: dict[str, Any] = {
        "goal": manifest.goal,
        "splits": dict(splits),
        "certificate": json.loads(certificate.to_json()),
        "label": manifest.label,
        "method": manifest.method,
        "model": manifest.model,
        "seed": manifest.seed,
        "versions": dict(manifest.versions),
        "created": manifest.created,
        "history": history,
        "columns": list(manifest.encoder.names),
        "group": manifest.group or "group",
        "notes": list(manifest.notes),
    }
    if manifest.classes:
        return ClassRun(
            **told,
            names=manifest.classes,
            shifts=certificate.shifts,
            baseline=baseline,
            baseline_shifts=_own_shifts(manifest, splits, baseline),
        )
    theirs = None
    if baseline is not None:
        theirs = {name: (scores, splits[name][1]) for name, scores in baseline.items()}
    return RunResult(
        **told,
        threshold=certificate.threshold if certificate.certified else None,
        positive=manifest.positive,
        baseline=theirs,
    )


def _own_shifts(manifest: Manifest, splits: Parts, baseline: Parts | None) -> list[float] | None:
    """The shifts of another model are chosen as ours are, on the validation part."""
    if baseline is None or "validation" not in baseline:
        return None
    _, labels, column = splits["validation"]
    groups = None if column is None else {manifest.group or "group": column}
    given = (Problem.parse(manifest.goal), baseline["validation"], labels)
    found: list[float] = best_shifts(*given, groups=groups, classes=manifest.classes)[0].tolist()
    return found
