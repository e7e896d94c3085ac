"""What a session leaves, before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from platform import python_version
from typing import Any

import numpy as np
from torch import nn

from setpoint._version import __version__
from setpoint.results import ClassRun, RunResult
from setpoint.runs.manifest import Manifest


@dataclass(frozen=True)
class Finished:
    """All that is written."""

    manifest: Manifest
    model: nn.Module
    certificate: Any
    history: list[dict[str, Any]]
    splits: dict[str, Any]
    baseline: dict[str, Any] | None
    result: RunResult | ClassRun


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "setpoint": __version__,
        "torch": version("torch"),
        "numpy": np.__version__,
        "python": python_version(),
    }
