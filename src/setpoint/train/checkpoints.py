"""A run on disk: one safetensors file, replaced as a whole, so that no moment can break it.

Everything is in one file (the JSON is its header) because two files cannot be replaced at once.
Nothing is pickled, and nothing in the file is code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

NAME = "checkpoint.safetensors"
KEY = "setpoint"

Tensors = dict[str, Tensor]


class OtherRun(ValueError):
    """A checkpoint that cannot be continued: of other settings or data, or damaged."""


def write_atomically(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``: after a crash there is the old file or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


def save_checkpoint(folder: Path, tensors: Tensors, record: dict[str, Any]) -> Path:
    """Write tensors and a JSON record into ``folder``; returns the file."""
    whole = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    path = folder / NAME
    write_atomically(path, save(whole, metadata={KEY: json.dumps(record)}))
    for left_by_a_killed_run in folder.glob(f".{NAME}.*"):
        left_by_a_killed_run.unlink(missing_ok=True)
    return path


def load_checkpoint(folder: Path) -> tuple[Tensors, dict[str, Any]] | None:
    """What :func:`save_checkpoint` wrote there last, or None if nothing was."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            record = json.loads((file.metadata() or {})[KEY])
    except (SafetensorError, KeyError, ValueError) as error:
        raise OtherRun(
            f"{path} is not a checkpoint of setpoint, or it is damaged ({error}). "
            "Delete it to train from the beginning."
        ) from None
    if not isinstance(record, dict):
        raise OtherRun(f"{path} holds no record of a run. Delete it to train anew.")
    return tensors, record


def _sync_folder(folder: Path) -> None:
    """Make the new name last too; systems that cannot open folders do without."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # pragma: no cover (Windows)
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
