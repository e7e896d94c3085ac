"""A finished run as the files of a folder."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from setpoint.runs.finished import Finished
from setpoint.runs.folder import CERTIFICATE, HISTORY, MODEL, REPORT, RUN, SCORES, write_folder
from setpoint.runs.manifest import digest
from setpoint.runs.model import model_bytes
from setpoint.runs.scores import scores_bytes


def write_run(folder: Path, finished: Finished, page: bytes, *, force: bool) -> None:
    """Write the folder completely or not at all."""
    certificate = json.dumps(json.loads(finished.certificate.to_json()), indent=2)
    history = "".join(
        json.dumps(finite(entry), allow_nan=False) + "\n" for entry in finished.history
    )
    files = {
        MODEL: model_bytes(finished.model),
        CERTIFICATE: f"{certificate}\n".encode(),
        HISTORY: history.encode(),
        SCORES: scores_bytes(finished.splits, finished.baseline),
    }
    digests = {name: digest(content) for name, content in files.items()}
    files[RUN] = replace(finished.manifest, files=digests).to_bytes()
    files[REPORT] = page
    write_folder(folder, files, force=force)


def finite(entry: dict[str, Any]) -> dict[str, Any]:
    """The same without NaN and infinities, which JSON does not have: null stands for them."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in entry.items()
    }
