"""Decisions ``score > threshold`` in the precision of the calibration scores.

A certificate is about scores as they are compared. A model in bfloat16 gives scores of 8 bits; a
threshold between two of them, or new scores that are not rounded the same way, would decide
differently from what was counted. So thresholds are numbers of that precision, and new scores are
rounded to it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import as_array, check_dense
from setpoint.batch import check_scores
from setpoint.rates import Value

SCORE_PRECISIONS = ("float16", "bfloat16", "float32", "float64")
_TORCH_CASTS = dict(zip(SCORE_PRECISIONS, ("half", "bfloat16", "float", "double"), strict=True))
_BFLOAT16_STEP = 1 << 16  # the upper half of a float32


def below(score: float, precision: str) -> float:
    """The next number below ``score`` in its precision: to exceed it is to reach ``score``.

    Below zero it is the next normal number: where a processor reads subnormal numbers as zero, a
    score of zero still exceeds it.
    """
    if score == 0:
        return -float(np.finfo(np.float32 if precision == "bfloat16" else precision).tiny)
    if precision == "bfloat16":
        return _below_bfloat16(score)
    dtype = np.dtype(precision)
    with np.errstate(over="ignore"):  # below the lowest number is minus infinity: accept all
        return float(np.nextafter(dtype.type(score), dtype.type("-inf")))


def halfway(value: float, scores: NDArray[Any], precision: str) -> float:
    """The threshold half way between the two neighbours of ``value`` among sorted ``scores``.

    It decides all of these scores as ``value`` does, and a rounding error in the score of one of
    them changes no decision. Beyond the first or the last score there is one neighbour only, and
    ``value`` stays.
    """
    after = int(np.searchsorted(scores, scores.dtype.type(value), "right"))
    if not np.isfinite(value) or after in (0, len(scores)):
        return value
    low, high = float(scores[after - 1]), float(scores[after])
    middle = float(rounded(np.array([low / 2 + high / 2]), precision)[0])
    tiny = np.finfo(np.float32 if precision == "bfloat16" else precision).tiny
    if 0 < abs(middle) < tiny:  # some processors read such numbers as zero
        middle = 0.0
    return middle if low <= middle < high else value


def exceeds(scores: Any, threshold: float, precision: str, wins: Any = None) -> Any:
    """``scores > threshold`` in the given precision, elementwise, for numpy and torch.

    Scores equal to the threshold exceed it where ``wins`` says so.
    """
    if hasattr(scores, "detach"):
        check_dense(scores, "scores")
        cast = getattr(scores.detach(), _TORCH_CASTS[precision])()
        if not bool((abs(cast) < float("inf")).all()):
            check_scores(scores.detach().double().cpu().numpy())
        return cast > threshold if wins is None else _or_wins(cast, threshold, beside(scores, wins))
    cast = rounded(scores, precision)
    return cast > threshold if wins is None else _or_wins(cast, threshold, wins)


def _or_wins(scores: Any, threshold: float, wins: Any) -> Any:
    return (scores > threshold) | ((scores == threshold) & wins)


def beside(scores: Any, mask: NDArray[np.bool_]) -> Any:
    """A mask as a tensor where the scores are, without importing torch."""
    return (scores.detach().new_tensor(mask.astype(float)) > 0.5).reshape(scores.shape)


def raised(scores: Any, threshold: float, wins: NDArray[np.bool_], precision: str) -> NDArray[Any]:
    """Scores of which ``score > threshold`` is the decision: winners of a tie lie just above."""
    array = rounded(scores, precision)
    just_above = array.dtype.type(-below(-threshold, precision))
    return np.where((array == threshold) & wins, just_above, array)


def exceeds_by_group(
    scores: Any,
    groups: Any,
    thresholds: Mapping[Value, float],
    column: str,
    precision: str,
    wins: Mapping[Any, Any] | None = None,
) -> Any:
    """``score > threshold`` of each score's own group.

    Raises:
        ValueError: The groups have another shape than the scores, or one has no threshold.
    """
    values = as_array(groups, "groups")
    if tuple(values.shape) != tuple(np.shape(scores)):
        raise ValueError(
            f"groups must have the shape of the scores, {tuple(np.shape(scores))}; "
            f"got {tuple(values.shape)}."
        )
    known = np.zeros(values.shape, bool)
    decided: Any = None
    for value, threshold in thresholds.items():
        inside: Any = np.asarray(values == value)
        known |= inside
        if hasattr(scores, "detach"):
            inside = beside(scores, inside)
        own = None if wins is None else wins[value]
        chosen = exceeds(scores, threshold, precision, own) & inside
        decided = chosen if decided is None else decided | chosen
    if not known.all():
        names = ", ".join(map(repr, thresholds))
        raise ValueError(
            f"No threshold for {column:.60} = {values[~known].tolist()[0]!r:.60}: it was not "
            "certified. Decide such rows by hand, or certify with rows of it; known are "
            f"{names:.200}."
        )
    return decided


def rounded(scores: Any, precision: str) -> NDArray[Any]:
    """Numpy scores in the given precision; finite ones beyond its range become infinite."""
    try:
        exact = as_array(scores, "scores")
        exact = exact if exact.dtype.kind in "fiub" else exact.astype(np.float64)
        with np.errstate(over="ignore"):  # beyond the largest number: infinite, and compared so
            array = exact.astype(np.float32 if precision == "bfloat16" else precision, copy=False)
    except (ValueError, OverflowError):
        raise TypeError(f"scores must be numbers; got {scores!r:.60}.") from None
    check_scores(exact)
    return _to_bfloat16(array) if precision == "bfloat16" else array


def _to_bfloat16(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to nearest, ties to even."""
    bits = np.ascontiguousarray(array).view(np.uint32).astype(np.uint64)
    even = bits + 0x7FFF + ((bits >> 16) & 1)
    return (even & 0xFFFF0000).astype(np.uint32).view(np.float32)


def _below_bfloat16(score: float) -> float:
    bits = int(np.float32(score).view(np.uint32))
    bits += -_BFLOAT16_STEP if score > 0 else _BFLOAT16_STEP
    return float(np.uint32(bits).view(np.float32))
