"""The demo's last step: a threshold with a certificate, and the report page of one model.

Nothing was chosen by the validation part, so it is free to be certified on.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import torch

from setpoint._version import __version__
from setpoint.certificates import Certificate, certify
from setpoint.datasets import letter, split
from setpoint.demo.plan import CORNER, MODELS
from setpoint.demo.trials import CROSS_ENTROPY, IMPLICIT, Trial
from setpoint.report import page
from setpoint.results import RunResult

PARTS = {"train": "train", "validation": "calibration", "test": "test"}
"""The parts of the data, and what they are to the certificate."""


def certify_one(trials: Sequence[Trial]) -> tuple[Certificate, RunResult]:
    """The linear model of the first seed: its certificate, and the run as the report takes it."""
    shown = {
        t.method: t.scores
        for t in trials
        if (t.goal, t.model, t.seed) == (CORNER.name, MODELS[0].name, 0)
    }
    ours, theirs = shown[IMPLICIT], shown[CROSS_ENTROPY]
    parts = split(letter(), 0)
    labels = {name: getattr(parts, name).y for name in PARTS}
    certificate = certify(ours["validation"], labels["validation"], CORNER.problem)
    run = RunResult(
        goal=str(CORNER.problem),
        splits={PARTS[name]: (ours[name], labels[name]) for name in PARTS},
        threshold=certificate.threshold if certificate.certified else None,
        certificate=json.loads(certificate.to_json()),
        label="letter",
        positive="U",
        method=IMPLICIT,
        model=MODELS[0].title.lower(),
        seed=0,
        versions={
            "setpoint": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        baseline={PARTS[name]: (theirs[name], labels[name]) for name in PARTS},
        notes=[
            "UCI Letter (D. Slate, 1991, CC BY 4.0): half to train, a quarter to certify, rest."
        ],
    )
    return certificate, run


def write_page(path: Path, run: RunResult) -> None:
    """The report, one file that needs no network."""
    path.write_text(page(run), encoding="utf-8")
