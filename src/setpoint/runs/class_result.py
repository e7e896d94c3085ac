"""A run for several classes as the plain data that the report draws. Never torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from setpoint.certify.classes import ClassCertificate
from setpoint.problems import Problem
from setpoint.problems.classes import best_shifts
from setpoint.results import ClassRun
from setpoint.runs.manifest import Manifest


def class_result_of(
    manifest: Manifest,
    certificate: ClassCertificate,
    history: list[dict[str, Any]],
    splits: Mapping[str, Any],
    baseline: Mapping[str, Any] | None,
) -> ClassRun:
    """The result of a run; ``baseline`` holds scores on the same rows, by part."""
    group = manifest.group or "group"
    theirs = None
    if baseline is not None and "validation" in baseline:
        _, labels, column = splits["validation"]
        problem, groups = Problem.parse(manifest.goal), None if column is None else {group: column}
        given = (problem, baseline["validation"], labels)
        theirs = best_shifts(*given, groups=groups, classes=manifest.classes)[0].tolist()
    return ClassRun(
        goal=manifest.goal,
        names=manifest.classes,
        splits=dict(splits),
        shifts=certificate.shifts,
        certificate=json.loads(certificate.to_json()),
        label=manifest.label,
        method=manifest.method,
        model=manifest.model,
        seed=manifest.seed,
        versions=dict(manifest.versions),
        created=manifest.created,
        history=history,
        baseline=baseline,
        baseline_shifts=theirs,
        columns=list(manifest.encoder.names),
        group=group,
        notes=list(manifest.notes),
    )
