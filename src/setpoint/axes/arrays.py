"""Arrays of numpy, and how values of other libraries become them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import Array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def quiet() -> AbstractContextManager[object]:
    """Divide by zero without a warning: 0/0 is a value here, not an accident."""
    return np.errstate(all="ignore")


def no_nan(values: Array) -> Array:
    """0/0 is the worst there is."""
    return np.where(values == values, values, np.inf)


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
