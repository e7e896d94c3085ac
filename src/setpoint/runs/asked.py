"""What ``setpoint train`` was asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from setpoint.problems import Problem
from setpoint.runs.training import Watch


@dataclass(frozen=True)
class Asked:
    """What the user of ``setpoint train`` asked for."""

    file: Path
    out: Path
    label: str
    problem: Problem
    model: str
    method: str
    group: str | None
    test: Path | None
    positive: str | None
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    confidence: float
    epochs: int | None
    batch_size: int
    learning_rate: float | None
    seed: int
    baseline: bool
    watch: Watch
