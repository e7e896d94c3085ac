"""What must be the same for a checkpoint to be continued: settings, data, start."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

CHUNK = 2**20
"""Rows read at once: data may be a file much larger than memory."""


def recipe(criterion: object, settings: Mapping[str, object], **parts: Any) -> dict[str, Any]:
    """Settings as they are written, and a digest of each part: data, weights, initial model."""
    name = repr(criterion) if isinstance(criterion, nn.Module) else _name_of(criterion)
    written = {key: str(value) for key, value in settings.items()}
    digests = {key: digest(part) for key, part in parts.items() if part is not None}
    return {"criterion": name, **written, **digests}


def digest(part: Any) -> str:
    """The fingerprint of tensors, arrays and collections of them."""
    found = hashlib.blake2b(digest_size=16)
    _add(found, part)
    return found.hexdigest()


def _add(found: Any, part: Any) -> None:
    if isinstance(part, Mapping):
        for key, value in part.items():
            found.update(str(key).encode())
            _add(found, value)
    elif isinstance(part, (tuple, list)) and any(isinstance(p, (Tensor, Mapping)) for p in part):
        for value in part:
            _add(found, value)
    elif part is not None:
        _add_array(found, part.detach().cpu() if isinstance(part, Tensor) else np.asarray(part))


def _add_array(found: Any, array: Any) -> None:
    found.update(f"{array.dtype}{tuple(array.shape)}".encode())
    if array.dtype == object:
        found.update(repr(array.tolist()).encode())
        return
    for i in range(0, len(array) if array.ndim else 1, CHUNK):
        piece = array[i : i + CHUNK] if array.ndim else array
        if isinstance(piece, Tensor):  # bfloat16 and the like have no numpy type
            piece = piece.contiguous().reshape(-1).view(torch.uint8).numpy()
        found.update(np.ascontiguousarray(piece))


def _name_of(criterion: object) -> str:
    return getattr(criterion, "__qualname__", type(criterion).__qualname__)
