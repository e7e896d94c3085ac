"""Ties broken by lot: of the scores that equal the threshold, a number drawn from the id decides.

A threshold never splits equal scores. With few distinct ones (a small tree, 8 bits, a score card)
it must stop where the next group of equals would break the bound, and far from using it up. With a
lot ``u`` between 0 and 1 for every row, pairs ``(score, u)`` in lexicographic order hardly ever
tie: ``(score, u) > (threshold, c)`` accepts scores above the threshold, and those equal to it whose
lot is above ``c``. Proofs use nothing but the order of the scores of independent rows, so they hold
for pairs as they are: here a pair is one number, the place of the score among the distinct ones
plus the lot.

The lot is a hash of the row's id (lowbias32, twice), so that a row is decided the same way whenever
it is looked at, in python, in the shell and in an exported program. The calibration rows together
seed it: if a lot depended on the id alone, certificates on rows numbered 0, 1, 2, ... would all
share the same lots, and whatever these get wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Bools, Floats
from setpoint.batch import check_length
from setpoint.certificates.clusters import read_ids
from setpoint.certificates.sample import CalibrationSample, check_copies

_LOW, _HALF = 0xFFFFFFFF, 2**32
_LOTS = 2**26
"""So many different lots: with up to as many distinct scores, place plus lot is exact."""


def lots(numbers: Any, seed: int) -> Any:
    """A lot between 0 and 1 for each whole number; numpy or torch, also in an exported graph."""
    low = numbers & _LOW
    high = ((numbers - low) // _HALF) & _LOW
    mixed = _mixed(_mixed(low ^ seed) ^ high ^ seed)
    drawn = mixed // (_HALF // _LOTS)
    drawn = drawn.double() if hasattr(drawn, "double") else drawn  # torch would take float32
    return (drawn + 0.5) / _LOTS


def _mixed(x: Any) -> Any:
    """A permutation of the numbers below 2^32 (lowbias32); products stay below 2^63."""
    for factor, shift in ((0x7FEB352D, 16), (0x846CA68B - _HALF, 15)):
        x = ((x ^ (x // 2**shift)) * factor) & _LOW
    return x ^ (x // 2**16)


def row_numbers(ids: Any) -> NDArray[np.int64]:
    """A whole number for each id: itself if it is one (or reads like one), else a hash of its text.

    Args:
        ids: One id per row: whole numbers, texts or timestamps.

    Raises:
        ValueError: An id is missing.

    Examples:
        >>> row_numbers(["17", "a7"]).tolist(), row_numbers([17]).tolist()
        ([17, 4278169734829385016], [17])
    """
    array = read_ids(ids, "ids")
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]").astype(np.int64)
    return np.array([_number_of(value) for value in array.tolist()], np.int64)


def _number_of(value: object) -> int:
    whole = isinstance(value, float) and value.is_integer()
    text = str(int(value) if whole else value)  # type: ignore[call-overload]
    number = int(text) if text.lstrip("-").isdecimal() and len(text) < 19 else None
    if number is not None and str(number) == text:
        return number
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True, eq=False)
class TieOrder:
    """How pairs of score and lot became numbers.

    Attributes:
        distinct: The scores that occur, from low to high.
        precision: Theirs.
        seed: Of the lots.
        notes: What is to be noticed of the scores before lots told them apart.
    """

    distinct: NDArray[Any]
    precision: str
    seed: int
    notes: tuple[str, ...]

    def pair(self, place: float) -> tuple[float, float]:
        """The score and the lot of a threshold; everyone is accepted above minus infinity."""
        if not np.isfinite(place):
            return place, 0.0
        at = min(max(int(np.floor(place)), 0), len(self.distinct) - 1)
        return float(self.distinct[at]) + 0.0, float(place - at)


def break_ties(sample: CalibrationSample, ids: Any) -> CalibrationSample:
    """The rows with scores that lots have told apart.

    Raises:
        ValueError: There is not one id for each row, one is missing, or two rows have the same.
    """
    numbers = row_numbers(ids)
    check_length(numbers, sample.scores if sample.kept is None else sample.kept, "ids")
    numbers = numbers if sample.kept is None else numbers[sample.kept]
    names, counts = np.unique(numbers, return_counts=True)
    if len(names) < len(numbers):
        rows = np.flatnonzero(numbers == names[np.argmax(counts > 1)])[:2]
        raise ValueError(
            f"ids are of rows, and rows {rows[0]} and {rows[1]} have the same: a lot for each row "
            "needs an id for each. (Who a row belongs to goes into clusters=.)"
        )
    distinct, places = np.unique(sample.scores, return_inverse=True)
    order = TieOrder(distinct, sample.precision, _seed(sample, numbers), check_copies(sample))
    scores = places.reshape(-1) + lots(numbers, order.seed)
    found = CalibrationSample(scores, sample.labels, sample.slices, "float64", sample.prevalence)
    found.inherit(sample)
    found.order = order
    return found


def _seed(sample: CalibrationSample, numbers: NDArray[np.int64]) -> int:
    """A function of all rows, whatever their order."""
    order = np.argsort(numbers)
    columns = [numbers, sample.scores, *([] if sample.labels is None else [sample.labels])]
    digest = hashlib.sha256(b"".join(column[order].tobytes() for column in columns)).digest()
    return int.from_bytes(digest[:4], "little")


def winners(ids: Any, seed: int, lot: float | Floats, shape: Sequence[int]) -> Bools:
    """Which rows are accepted if their score equals the threshold."""
    numbers = row_numbers(ids)
    if numbers.shape != tuple(shape):
        raise ValueError(f"ids must be one per score, {tuple(shape)}; got {numbers.shape}.")
    return np.asarray(lots(numbers, seed) > lot)
