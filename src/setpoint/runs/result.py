"""A run read back: certificate, history, scores, and all of it as the report draws it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.class_choice import best_shifts
from setpoint.batch import ScoredExamples
from setpoint.certificates import Certificate, ClassCertificate, ThreeWayCertificate
from setpoint.problems import Problem
from setpoint.results import RunResult
from setpoint.runs.folder import (
    CERTIFICATE_FILE,
    HISTORY_FILE,
    SCORES_FILE,
    Manifest,
    RunError,
    read_digested,
)
from setpoint.tables.training_file import PART_NAMES

Splits = Mapping[str, tuple[Any, Any, Any]]
"""Scores, labels and groups (or None) of each part."""
Arrays = dict[str, NDArray[Any]]
_DTYPES = {"F32": "<f4", "U8": "u1", "I32": "<i4", "I64": "<i8"}
_Kind = TypeVar("_Kind", Certificate, ClassCertificate, ThreeWayCertificate)
_LARGEST_CERTIFICATE = 50_000_000  # bytes


def read_certificate(folder: Path, manifest: Manifest) -> Certificate | ClassCertificate:
    """certificate.json of a run; RunError if it is damaged or does not belong to run.json."""
    path, content = folder / CERTIFICATE_FILE, read_digested(folder, manifest, CERTIFICATE_FILE)
    if not manifest.classes:
        return parse_certificate(path, content)
    found = _parsed(ClassCertificate, path, content)
    if found.classes != manifest.classes or found.goal != manifest.goal:
        raise RunError(f"{path} does not belong to run.json: it is of other classes.")
    return found


def parse_certificate(path: Path, content: bytes) -> Certificate:
    """A certificate from an untrusted file; RunError if it is none."""
    return _parsed(Certificate, path, content)


def read_certificate_file(path: Path) -> Certificate | ThreeWayCertificate:
    """The certificate in a file, with one threshold, several, or a range to review.

    Raises:
        RunError: There is no such file, or it holds no such certificate.
    """
    found = read_any_certificate_file(path)
    if isinstance(found, ClassCertificate):
        raise RunError(
            f"{path} is about several classes: `setpoint watch` takes it, and from Python "
            "setpoint.certificates.ClassCertificate.from_json(text) has check() and decide()."
        )
    return found


def read_any_certificate_file(path: Path) -> Certificate | ThreeWayCertificate | ClassCertificate:
    """The certificate in a file, with thresholds or of several classes.

    Raises:
        RunError: There is no such file, or it holds no such certificate.
    """
    if not path.is_file():
        found = "is no plain file" if path.exists() else "no such file"
        raise RunError(f"{path}: {found}; name a certificate that `setpoint certify` wrote.")
    if path.stat().st_size > _LARGEST_CERTIFICATE:
        raise RunError(f"{path} is {path.stat().st_size:,} bytes long: no certificate.")
    content = path.read_bytes()
    if ThreeWayCertificate.kind.encode() in content:
        return _parsed(ThreeWayCertificate, path, content)
    if ClassCertificate.kind.encode() in content:
        return _parsed(ClassCertificate, path, content)
    return parse_certificate(path, content)


def _parsed(kind: type[_Kind], path: Path, content: bytes) -> _Kind:
    try:
        return kind.from_json(content.decode())
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        why = " ".join(str(error).split())[:200]
        raise RunError(f"{path} is not a certificate that setpoint wrote: {why}") from None


def read_history(folder: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """history.jsonl of a run: one dict per epoch."""
    lines = read_digested(folder, manifest, HISTORY_FILE).decode().splitlines()
    try:
        history = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        history = [None]
    if not all(isinstance(entry, dict) for entry in history):
        raise RunError(f"{folder / HISTORY_FILE} is damaged; train again.")
    return history


def read_splits(folder: Path, manifest: Manifest) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The splits of scores.safetensors, and the baseline's scores of each part if there are any.

    Raises:
        RunError: The file is damaged.
    """
    try:
        arrays = _load_arrays(read_digested(folder, manifest, SCORES_FILE))
        there = [name for name in (*PART_NAMES, "test") if f"{name}/scores" in arrays]
        splits = {name: _part(arrays, name, len(manifest.classes)) for name in there}
        if not splits or not all(len(scores) for scores, _, _ in splits.values()):
            raise ValueError("no scores")
        compared = [name for name in splits if f"{name}/baseline" in arrays]
        baseline = {name: arrays[f"{name}/baseline"] for name in compared}
        if any(baseline[name].shape != splits[name][0].shape for name in baseline):
            raise ValueError("shapes differ")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise RunError(f"{folder / SCORES_FILE} is damaged; train again.") from None
    return splits, baseline or None


def score_arrays(splits: Splits, baseline: Mapping[str, Any] | None) -> Arrays:
    """The content of scores.safetensors: scores, labels and group numbers of each part."""
    arrays: Arrays = {}
    for name, (scores, labels, groups) in splits.items():
        arrays[f"{name}/scores"] = np.ascontiguousarray(scores, np.float32)
        few = np.max(labels, initial=0) < 256
        arrays[f"{name}/labels"] = np.ascontiguousarray(labels, np.uint8 if few else np.int32)
        if groups is not None:
            names, codes = np.unique(groups, return_inverse=True)
            text = json.dumps([str(name) for name in names]).encode()
            arrays[f"{name}/group_names"] = np.frombuffer(text, np.uint8).copy()
            arrays[f"{name}/groups"] = codes.astype(np.int64)
        if baseline is not None:
            arrays[f"{name}/baseline"] = np.ascontiguousarray(baseline[name], np.float32)
    return arrays


def _load_arrays(content: bytes) -> Arrays:
    """The arrays of a safetensors file: so that pages can be drawn without the extra ``train``."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start].decode())
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = np.frombuffer(content[start + first : start + last], _DTYPES[entry["dtype"]])
        arrays[name] = values.reshape(entry["shape"])
    return arrays


def _part(arrays: Arrays, name: str, classes: int) -> tuple[Any, Any, Any]:
    scores, labels = arrays[f"{name}/scores"], arrays[f"{name}/labels"]
    columns = (classes,) if classes else ()
    if labels.ndim != 1 or scores.shape != (*labels.shape, *columns):
        raise ValueError("shapes differ")
    if classes and not 0 <= labels.min(initial=0) <= labels.max(initial=0) < classes:
        raise ValueError("a label is no class")
    if f"{name}/groups" not in arrays:
        return scores, labels, None
    names = np.array(json.loads(arrays[f"{name}/group_names"].tobytes().decode()), dtype=str)
    return scores, labels, names[arrays[f"{name}/groups"]]


def read_result(folder: Path, manifest: Manifest) -> RunResult:
    """All of a run that the report draws."""
    splits, baseline = read_splits(folder, manifest)
    certificate = read_certificate(folder, manifest)
    return result_of(manifest, certificate, read_history(folder, manifest), splits, baseline)


def result_of(
    manifest: Manifest,
    certificate: Any,
    history: list[dict[str, Any]],
    splits: Splits,
    baseline: Mapping[str, Any] | None,
) -> RunResult:
    """The result of a run; ``baseline`` holds another model's scores of the same rows, by part."""
    fields: dict[str, Any] = {
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
        "baseline": baseline,
    }
    if manifest.classes:
        shifts = _baseline_shifts(manifest, splits, baseline)
        fields |= {"classes": manifest.classes, "baseline_threshold": shifts}
        return RunResult(**fields, threshold=certificate.shifts)
    fields |= {"positive": manifest.positive, **manifest.words, "costs": manifest.costs}
    return RunResult(**fields, threshold=certificate.threshold_or_none)


def _baseline_shifts(
    manifest: Manifest, splits: Splits, baseline: Mapping[str, Any] | None
) -> list[float] | None:
    """The shifts of the baseline are chosen as ours are, on the validation part."""
    if baseline is None or "validation" not in baseline:
        return None
    _, labels, column = splits["validation"]
    groups = None if column is None else {manifest.group or "group": column}
    given = (baseline["validation"], labels, None, groups, None, manifest.classes)
    found: list[float] = best_shifts(Problem.parse(manifest.goal), ScoredExamples(*given))[
        0
    ].tolist()
    return found
