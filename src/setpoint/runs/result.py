"""A run as the plain data that the report draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from setpoint.results import RunResult
from setpoint.runs.manifest import Manifest


def result_of(
    manifest: Manifest,
    certificate: Any,
    history: list[dict[str, Any]],
    splits: Mapping[str, Any],
    baseline: Mapping[str, Any] | None,
) -> RunResult:
    """The result of a run; ``baseline`` holds scores on the same rows, by part."""
    theirs = None
    if baseline is not None:
        theirs = {name: (scores, splits[name][1]) for name, scores in baseline.items()}
    return RunResult(
        goal=manifest.goal,
        splits=dict(splits),
        threshold=certificate.threshold if certificate.certified else None,
        certificate=json.loads(certificate.to_json()),
        label=manifest.label,
        positive=manifest.positive,
        method=manifest.method,
        model=manifest.model,
        seed=manifest.seed,
        versions=dict(manifest.versions),
        created=manifest.created,
        history=history,
        baseline=theirs,
        columns=list(manifest.encoder.names),
        group=manifest.group or "group",
        notes=list(manifest.notes),
    )
