"""A run as the plain data that the report draws. Never torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from setpoint.axes.class_choice import best_shifts
from setpoint.problems import Problem
from setpoint.results import ClassRun, RunResult
from setpoint.runs.manifest import Manifest

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
