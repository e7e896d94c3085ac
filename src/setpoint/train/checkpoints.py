"""A run on disk: one safetensors file, replaced as a whole, so that a crash cannot break it.

Everything is in one file (the JSON is its header) because two files cannot be replaced at once.
Nothing is pickled, and nothing in the file is code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from setpoint._files import write_file
from setpoint.certificates.copies import Digests, mixed
from setpoint.distributed import rank_of, values_of_ranks
from setpoint.train.averaging import Averaged

Tensors = dict[str, Tensor]
EpochLog = list[dict[str, Any]]

_NAME = "checkpoint.safetensors"
_KEY = "setpoint"  # of the JSON record in the header
_RNG = "rng"
_ROWS_AT_ONCE = 2**18  # rows read at once for a digest: data may be a file much larger than memory
_TEXT_KINDS = "OUS"  # kinds of arrays whose values are compared by how they are written


class OtherRun(ValueError):
    """A checkpoint that cannot be continued: of other settings or data, or damaged."""


@dataclass
class Progress:
    """How far a run is: plain data, one dict of history per pass."""

    step: int = 0
    best: float | None = None
    best_epoch: int | None = None
    finished: bool = False
    history: EpochLog = field(default_factory=list)


@dataclass
class RunState:
    """All parts of a run that change while it trains; ``best`` holds the best weights so far."""

    model: nn.Module
    optimizer: Optimizer
    average: Averaged | None
    criterion: Any
    best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def current(self) -> nn.Module:
        """The model as it is judged: with averaged weights, if they are averaged."""
        return self.model if self.average is None else self.average.module

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name, and the state of the random number generator.

        Raises:
            TypeError: A part has state that is not a tensor.
        """
        named = {_RNG: torch.get_rng_state()}
        for prefix, module in self._modules():
            named.update(_prefixed(prefix, module.state_dict()))
        for index, slots in self.optimizer.state_dict()["state"].items():
            named.update(_prefixed(f"optimizer.{index}", slots))
        named.update(_prefixed("best", self.best))
        return named

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`tensors` returned."""
        for prefix, module in self._modules():
            module.load_state_dict(_under(prefix, tensors))
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer", tensors).items():
            index, slot = name.split(".", 1)
            state.setdefault(int(index), {})[slot] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.best = _under("best", tensors)
        torch.set_rng_state(tensors[_RNG])

    def _modules(self) -> list[tuple[str, nn.Module]]:
        parts = (("model", self.model), ("average", self.average), ("criterion", self.criterion))
        return [(name, part) for name, part in parts if isinstance(part, nn.Module)]


def _prefixed(prefix: str, tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{prefix}.{name} is a {type(value).__name__}; checkpoints hold tensors only. "
                "Keep state in buffers, or train without checkpoints."
            )
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


def save_checkpoint(folder: Path, tensors: Tensors, record: dict[str, Any]) -> Path:
    """Write tensors and a JSON record into ``folder``; returns the file."""
    whole = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    path = folder / _NAME
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, save(whole, metadata={_KEY: json.dumps(record)}))
    return path


def load_checkpoint(folder: Path) -> tuple[Tensors, dict[str, Any]] | None:
    """What :func:`save_checkpoint` wrote there last, or None if nothing was."""
    path = folder / _NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            record = json.loads((file.metadata() or {})[_KEY])
    except (SafetensorError, KeyError, ValueError) as error:
        raise OtherRun(
            f"{path} is not a checkpoint of setpoint, or it is damaged ({error}). "
            "Delete it to train from the beginning."
        ) from None
    if not isinstance(record, dict):
        raise OtherRun(f"{path} holds no record of a run. Delete it to train anew.")
    return tensors, record


def recipe_of(
    state: RunState, settings: Mapping[str, object], rows: Mapping[str, tuple[Any, ...] | None]
) -> dict[str, Any]:
    """What must be the same for a checkpoint to be resumed: settings, data and initial weights.

    The number of processes may differ: the rows of all ranks count as one table.

    Args:
        state: The run before its first step.
        settings: Everything else that decides the numbers.
        rows: Columns with one row per example of this rank, by what they are for.
    """
    criterion = state.criterion
    name = getattr(criterion, "__qualname__", type(criterion).__qualname__)
    name = repr(criterion) if isinstance(criterion, nn.Module) else name
    written = {key: str(value) for key, value in settings.items()}
    digests = {key: _digest_of_rows(part) for key, part in rows.items() if part is not None}
    start = tensor_digest(state.model.state_dict())
    return {"criterion": name, **written, **digests, "start": start}


def _digest_of_rows(columns: tuple[Any, ...]) -> str:
    """The number of rows of all ranks, and their digest."""
    counts = values_of_ranks(len(columns[0]))
    found = values_of_ranks(column_digest(columns, sum(counts[: rank_of()])))
    return f"{sum(counts):,} rows {sum(found) % 2**64:016x}"


def tensor_digest(named: Mapping[str, Any]) -> str:
    """The first 16 digits of the SHA-256 of names, types, shapes and content.

    What is no tensor is left out: it is refused when the checkpoint is written.
    """
    found = hashlib.sha256()
    for name, value in named.items():
        if isinstance(value, Tensor):
            tensor = value.detach().cpu().contiguous()
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def column_digest(part: Any, first: int = 0, name: str = "") -> int:
    """A digest of columns that does not depend on how their rows are split over processes.

    Each row becomes one number, mixed with its position; the digest is their sum, so the sum over
    ranks is the digest of all rows. It tells apart data that were mixed up, not forged data.

    Args:
        part: A tensor, an array, or a dict or tuple of them; None adds nothing.
        first: The position of the first of these rows among those of all ranks.
        name: Distinguishes columns with the same values.
    """
    if part is None:
        return 0
    if isinstance(part, Mapping):
        found = (column_digest(part[key], first, f"{name}.{key}") for key in part)
        return sum(found) % 2**64
    if isinstance(part, tuple):
        found = (column_digest(one, first, f"{name}.{i}") for i, one in enumerate(part))
        return sum(found) % 2**64
    column = part.detach().cpu() if isinstance(part, Tensor) else np.asarray(part)
    text = isinstance(column, np.ndarray) and column.dtype.kind in _TEXT_KINDS
    salt = f"{name} {'text' if text else column.dtype}"
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for start in range(0, len(column), _ROWS_AT_ONCE):
            words = _words(column[start : start + _ROWS_AT_ONCE])
            places = np.arange(first + start, first + start + len(words), dtype=np.uint64)
            total += mixed(_row_sums(words, salt) ^ mixed(places)).sum(dtype=np.uint64)
    return int(total)


def _words(rows: Any) -> Digests:
    """Rows as 64-bit words, ``[n, k]``."""
    if isinstance(rows, Tensor):
        raw = rows.contiguous().reshape(len(rows), -1).view(torch.uint8).numpy()
    elif rows.dtype.kind in _TEXT_KINDS:
        values, codes = np.unique(rows.astype(str), return_inverse=True)
        texts = [hashlib.blake2b(v.encode(), digest_size=8).digest() for v in values.tolist()]
        raw = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, 8)[codes.reshape(-1)]
    else:
        raw = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 8) * 8), np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view(np.uint64)


def _row_sums(words: Digests, salt: str) -> Digests:
    """One number per row: its words times odd numbers that depend on salt and position."""
    seed = np.frombuffer(hashlib.blake2b(salt.encode(), digest_size=8).digest(), np.uint64)[0]
    odd = mixed(np.arange(1, words.shape[1] + 1, dtype=np.uint64) * seed) | np.uint64(1)
    sums: Digests = (mixed(words) * odd).sum(1, dtype=np.uint64)
    return sums
