"""The choice between numpy and torch: everything that the two libraries do differently.

``xp`` is either module. Torch is never imported here: tensors are known by their methods.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import Array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def quiet(xp: Any) -> AbstractContextManager[object]:
    """Let numpy divide by zero as silently as torch does: 0/0 is a value here, not an accident."""
    return np.errstate(all="ignore") if xp is np else nullcontext()


def take(xp: Any, values: Array, index: Array) -> Array:
    """``values`` [c, n] at ``index`` [c, m]; below zero is the first."""
    if xp is np and len(values) == 1:
        return values.take(index, mode="clip")
    return (np.take_along_axis if xp is np else xp.take_along_dim)(values, index.clip(0), -1)


def bisect(xp: Any, rising: Array, values: Array, side: str = "left") -> Array:
    """The first place where ``rising`` [c, n] is at least (right: above) ``values`` [c, m]."""
    if xp is not np:
        return xp.searchsorted(rising, values, side=side)
    if len(rising) == 1:
        return rising[0].searchsorted(values, side)
    return np.stack([r.searchsorted(v, side) for r, v in zip(rising, values, strict=True)])


def no_nan(xp: Any, values: Array) -> Array:
    """0/0 is the worst there is."""
    return xp.where(values == values, values, float("inf"))


def like(values: Array, numbers: tuple[float, ...]) -> Array:
    """The numbers as an array of the kind and place of ``values``."""
    return values.new_tensor(numbers) if hasattr(values, "new_tensor") else np.asarray(numbers)


def to_numpy(values: Any, name: str) -> NDArray[Any]:
    """Numbers of numpy, torch (any dtype, any device) or plain lists, as float64."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers; got {values!r:.60}.") from None


def rounded_like(scores: Any, thresholds: Any) -> Any:
    """Numbers in the precision of the scores, if these are floats."""
    if hasattr(scores, "new_tensor"):
        floats = scores.is_floating_point()
        return scores.new_tensor(thresholds).double().cpu().numpy() if floats else thresholds
    dtype = getattr(scores, "dtype", np.dtype(float))
    floats = getattr(dtype, "kind", "") == "f"
    return np.asarray(thresholds, dtype=dtype).astype(float) if floats else thresholds


def library_of(values: Any) -> Any:
    """The module that computes with ``values``: numpy, or torch for tensors."""
    if isinstance(values, np.ndarray):
        return np
    import torch

    return torch
