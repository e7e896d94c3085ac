"""scores.safetensors: the scores of every part, so that the report can be drawn again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from setpoint.runs.folder import SCORES, RunError
from setpoint.runs.manifest import Manifest, read_digested

PARTS = ("train", "validation", "calibration", "test")
Arrays = dict[str, NDArray[Any]]


def scores_bytes(
    splits: Mapping[str, tuple[Any, Any, Any]], baseline: Mapping[str, Any] | None
) -> bytes:
    """The content of the file: scores, labels and group numbers of each part."""
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
    return save(arrays)


def read_scores(folder: Path, manifest: Manifest) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The parts, ``{name: (scores, labels, groups or None)}``, and those of the baseline.

    Raises:
        RunError: The file is damaged.
    """
    try:
        arrays = load(read_digested(folder, manifest, SCORES))
        columns = (len(manifest.classes),) if manifest.classes else ()
        there = [name for name in PARTS if f"{name}/scores" in arrays]
        splits = {name: _part(arrays, name, columns) for name in there}
        lengths = {len(column) for part in splits.values() for column in part[:1]}
        if not splits or 0 in lengths:
            raise ValueError("no scores")
        compared = [name for name in splits if f"{name}/baseline" in arrays]
        theirs = {name: (arrays[f"{name}/baseline"], splits[name][1]) for name in compared}
        if any(theirs[name][0].shape != splits[name][0].shape for name in theirs):
            raise ValueError("shapes differ")
    except (SafetensorError, ValueError, KeyError, IndexError, UnicodeDecodeError):
        raise RunError(f"{folder / SCORES} is damaged; train again.") from None
    return splits, theirs or None


def _part(arrays: Arrays, name: str, columns: tuple[int, ...]) -> tuple[Any, Any, Any]:
    scores, labels = arrays[f"{name}/scores"], arrays[f"{name}/labels"]
    if labels.ndim != 1 or scores.shape != (*labels.shape, *columns):
        raise ValueError("shapes differ")
    if columns and not 0 <= labels.min(initial=0) <= labels.max(initial=0) < columns[0]:
        raise ValueError("a label is no class")
    if f"{name}/groups" not in arrays:
        return scores, labels, None
    names = np.array(json.loads(arrays[f"{name}/group_names"].tobytes().decode()), dtype=str)
    return scores, labels, names[arrays[f"{name}/groups"]]
