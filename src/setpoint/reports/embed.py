"""The numbers of the page once more, for machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from setpoint.results.findings import ClassFindings, Findings


def data(found: Findings) -> dict[str, Any]:
    """Plain JSON: no scores of single cases, no NaN."""
    run = found.run
    own = {
        "threshold": run.threshold,
        "positive": run.positive,
        "sensitivity": found.sensitivity,
        "comparison": found.comparison,
        "groups": found.groups,
    }
    return _whole("setpoint report 1", found, own)


def class_data(found: ClassFindings) -> dict[str, Any]:
    """The same for several classes."""
    own = {
        "classes": found.run.names,
        "shifts": found.run.shifts,
        "confusion": {"before": found.confusions.before, "after": found.confusions.after},
        "by_class": found.classes,
    }
    return _whole("setpoint report of classes 1", found, own)


def _whole(name: str, found: Findings | ClassFindings, own: dict[str, Any]) -> dict[str, Any]:
    """What every report has, and what this kind of it has besides."""
    run = found.run
    shared = {
        "format": name,
        "goal": run.goal,
        "status": found.verdict.status,
        "confidence": found.verdict.confidence,
        "judged_on": found.judged.name,
        "label": run.label,
        "method": run.method,
        "model": run.model,
        "seed": run.seed,
        "created": run.created,
        "versions": run.versions,
        "splits": found.splits,
        "certificate": run.certificate,
        "history": run.history,
        "columns": run.columns,
        "notes": run.notes,
    }
    return {key: plain(value) for key, value in (shared | own).items()}


def plain(value: Any) -> Any:
    """Whatever it is, as JSON knows it; NaN and infinity are null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if hasattr(value, "_asdict"):
            return plain(value._asdict())
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)
