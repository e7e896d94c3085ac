"""A digest of rows that does not depend on how they are dealt out over processes.

Each row becomes one number, mixed with its place; the digest is their sum, so the sum over ranks is
the digest of all rows. It tells data apart that were mixed up, not data that someone forged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHUNK = 2**18
"""Rows read at once: data may be a file much larger than memory."""

TEXTS = "OUS"
"""Kinds of arrays whose values are compared by how they are written."""

Words = NDArray[np.uint64]


def fingerprint(part: Any, first: int = 0, name: str = "") -> int:
    """The digest of columns with a row an example, of which ``first`` is the number of the first.

    Args:
        part: A tensor, an array, or a dict or tuple of them; None counts nothing.
        first: Where these rows are among all.
        name: What tells columns apart that hold the same.
    """
    if part is None:
        return 0
    if isinstance(part, Mapping):
        found = (fingerprint(part[key], first, f"{name}.{key}") for key in part)
        return sum(found) % 2**64
    if isinstance(part, tuple):
        found = (fingerprint(one, first, f"{name}.{i}") for i, one in enumerate(part))
        return sum(found) % 2**64
    column = part.detach().cpu() if isinstance(part, Tensor) else np.asarray(part)
    text = isinstance(column, np.ndarray) and column.dtype.kind in TEXTS
    salt = f"{name} {'text' if text else column.dtype}"
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for start in range(0, len(column), CHUNK):
            words = _words(column[start : start + CHUNK])
            places = np.arange(first + start, first + start + len(words), dtype=np.uint64)
            total += _mixed(_row_sums(words, salt) ^ _mixed(places)).sum(dtype=np.uint64)
    return int(total)


def _words(rows: Any) -> Words:
    """Rows as 64-bit words, ``[n, k]``."""
    if isinstance(rows, Tensor):
        raw = rows.contiguous().reshape(len(rows), -1).view(torch.uint8).numpy()
    elif rows.dtype.kind in TEXTS:
        values, codes = np.unique(rows.astype(str), return_inverse=True)
        texts = [hashlib.blake2b(v.encode(), digest_size=8).digest() for v in values.tolist()]
        raw = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, 8)[codes.reshape(-1)]
    else:
        raw = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 8) * 8), np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view(np.uint64)


def _row_sums(words: Words, salt: str) -> Words:
    """One number a row: its words times odd numbers that the salt and the place choose."""
    seed = np.frombuffer(hashlib.blake2b(salt.encode(), digest_size=8).digest(), np.uint64)[0]
    odd = _mixed(np.arange(1, words.shape[1] + 1, dtype=np.uint64) * seed) | np.uint64(1)
    sums: Words = (_mixed(words) * odd).sum(1, dtype=np.uint64)
    return sums


def _mixed(numbers: Words) -> Words:
    """Every bit of a number to every place (the finish of splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Words = mixed ^ (mixed >> np.uint64(31))
    return result
