"""The precision of the calibration scores: the next number below, and rounding to it.

A promise about ``score > threshold`` is about the scores as they are compared. Scores of a model
that runs in bfloat16 have 8 bits; a threshold between two of them, or new scores that were not
rounded the same way, would decide differently from what was counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_scores
from setpoint.rates import Value

NAMES = ("float16", "bfloat16", "float32", "float64")
_TORCH_CASTS = {
    "float16": "half",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
}
_BFLOAT16_STEP = 1 << 16  # the upper half of a float32


def read_scores(scores: Any) -> tuple[NDArray[Any], str]:
    """Scores ``[n]`` of numpy, torch or a list, and the precision they come in.

    Half precisions are kept in float32, which holds them exactly; whole numbers become float64.
    """
    name = str(getattr(scores, "dtype", "float64")).removeprefix("torch.")
    if hasattr(scores, "detach"):
        scores = scores.detach().cpu()
        scores = (scores.float() if "float16" in name else scores).numpy()
    name = name if name in NAMES else "float64"
    try:
        array = np.asarray(scores, dtype=np.float64 if name == "float64" else np.float32)
    except (TypeError, ValueError):
        raise TypeError(f"scores must be numbers; got {scores!r:.60}.") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"scores must be one number an example, [n] or [n, 1]; got the shape {array.shape}. "
            "Certify several outputs one by one: scores[:, i]."
        )
    if array.size == 0:
        raise ValueError("There are no scores: pass those of at least one example.")
    check_scores(array)
    return array, name


def below(score: float, name: str) -> float:
    """The next number below ``score`` in its precision: to be above it is to reach ``score``.

    Never a subnormal number, which some processors read as zero: the next normal one below is as
    good, since a lower threshold only accepts more.
    """
    if name == "bfloat16":
        value, smallest = _below_bfloat16(score), np.finfo(np.float32).tiny
    else:
        dtype = np.dtype(name)
        value, smallest = np.nextafter(dtype.type(score), dtype.type("-inf")), np.finfo(dtype).tiny
    if 0 < abs(value) < smallest:
        return 0.0 if value > 0 else -float(smallest)
    return float(value)


def exceeds(scores: Any, threshold: float, name: str) -> Any:
    """``scores > threshold`` in the given precision, for numpy and torch alike, elementwise."""
    if hasattr(scores, "detach"):
        cast = getattr(scores.detach(), _TORCH_CASTS[name])()
        if not bool((abs(cast) < float("inf")).all()):
            check_scores(scores.detach().double().cpu().numpy())
        return cast > threshold
    return rounded(scores, name) > threshold


def rounded(scores: Any, name: str) -> NDArray[Any]:
    """Numpy scores in the given precision; finite ones beyond its range become infinite."""
    try:
        exact = np.asarray(scores, dtype=None if hasattr(scores, "dtype") else np.float64)
        with np.errstate(over="ignore"):  # above the largest there is: infinite, and compared so
            array = exact.astype(np.float32 if name == "bfloat16" else name, copy=False)
    except (TypeError, ValueError):
        raise TypeError(f"scores must be numbers; got {scores!r:.60}.") from None
    check_scores(exact)
    return _to_bfloat16(array) if name == "bfloat16" else array


def _to_bfloat16(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to nearest, ties to even."""
    bits = np.ascontiguousarray(array).view(np.uint32).astype(np.uint64)
    even = bits + 0x7FFF + ((bits >> 16) & 1)
    return (even & 0xFFFF0000).astype(np.uint32).view(np.float32)


def _below_bfloat16(score: float) -> float:
    if score == 0:
        return -float(np.finfo(np.float32).tiny)
    bits = int(np.float32(score).view(np.uint32))
    bits += -_BFLOAT16_STEP if score > 0 else _BFLOAT16_STEP
    return float(np.uint32(bits).view(np.float32))


# Decisions where every group has its own threshold.


def decide_by_group(
    thresholds: dict[Value, float], column_name: str, dtype: str, scores: Any, groups: Any
) -> Any:
    """``score > threshold`` of each score's own group."""
    column = np.asarray(groups.detach().cpu() if hasattr(groups, "detach") else groups)
    if tuple(column.shape) != tuple(np.shape(scores)):
        raise ValueError(
            f"groups must have the shape of the scores, {tuple(np.shape(scores))}; "
            f"got {tuple(column.shape)}."
        )
    known = np.zeros(column.shape, bool)
    decided: Any = None
    for value, threshold in thresholds.items():
        inside = np.asarray(column == value)
        known |= inside
        mask = inside if not hasattr(scores, "detach") else _like(inside, scores)
        chosen = exceeds(scores, threshold, dtype) & mask
        decided = chosen if decided is None else decided | chosen
    if not known.all():
        stranger = column[~known].tolist()[0]
        known_ones = ", ".join(map(repr, thresholds))
        raise ValueError(
            f"No threshold for {column_name} = {stranger!r}: it was not certified. Decide such "
            f"rows by hand, or certify with rows of it; known are {known_ones}."
        )
    return decided


def _like(mask: Any, tensor: Any) -> Any:
    """A mask as a tensor beside ``tensor``, without importing torch."""
    return (tensor.detach().new_tensor(mask.astype(float)) > 0.5).reshape(tensor.shape)
