"""The four counts of a thresholded classifier, and weighted sums of them.

``TP + FP`` is not a number but a recipe: handed a table of counts (python floats, numpy arrays or
torch tensors, hard or soft) it gives the number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from setpoint._checks import number

Array = Any
"""A float, a numpy array or a torch tensor: whatever supports ``+ - * /``."""


@dataclass(frozen=True)
class Counts:
    """A table of counts. ``positives`` and ``negatives`` are the exact class totals.

    With soft steps ``tp + fn`` need not add up to ``positives``, which is why the totals are told.
    """

    tp: Array
    fp: Array
    fn: Array
    tn: Array
    positives: Array
    negatives: Array


@dataclass(frozen=True)
class Count:
    """A weighted sum of TP, FP, FN, TN and the number one.

    >>> str(2 * TP + FN)
    '2 TP + FN'
    """

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0
    one: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = number(getattr(self, field.name), f"The weight of {field.name.upper()}")
            object.__setattr__(self, field.name, value + 0.0)  # -0.0 becomes 0.0

    def __add__(self, other: Count) -> Count:
        if not isinstance(other, Count):
            return NotImplemented
        return Count(*(a + b for a, b in zip(self.weights, other.weights, strict=True)))

    def __mul__(self, factor: float) -> Count:
        return Count(*(factor * a for a in self.weights))

    __rmul__ = __mul__

    def __sub__(self, other: Count) -> Count:
        return self + -1 * other

    @property
    def weights(self) -> tuple[float, float, float, float, float]:
        """The five weights in the order TP, FP, FN, TN, one."""
        return (self.tp, self.fp, self.fn, self.tn, self.one)

    def of(self, table: Counts) -> Array:
        """The number this sum stands for in ``table``.

        What both outcomes of a class share is taken from the exact class total:
        ``2 TP + FN`` is ``positives + TP``.
        """
        total: Array = self.one
        for hit, miss, hits, misses, both in (
            (self.tp, self.fn, table.tp, table.fn, table.positives),
            (self.fp, self.tn, table.fp, table.tn, table.negatives),
        ):
            common = hit if hit == miss else min(hit, miss) if hit * miss > 0 else 0.0
            parts = ((common, both), (hit - common, hits), (miss - common, misses))
            for weight, value in parts:
                if weight:
                    total = total + weight * value
        return total

    def __str__(self) -> str:
        return signed_sum(zip(self.weights, ("TP", "FP", "FN", "TN", ""), strict=True))


def numeral(x: float) -> str:
    """The shortest text that reads back as exactly ``x``: ``0.01``, ``1``, ``1e-05``."""
    short = f"{x:g}"
    return short if float(short) == x else repr(x)


def signed_sum(terms: Any) -> str:
    """``2 TP + FN - 0.5``: a sum from pairs of weight and name (the empty name: a constant)."""
    text = ""
    for weight, name in terms:
        if not weight:
            continue
        size = "" if abs(weight) == 1 and name else numeral(abs(weight))
        sign = "-" if weight < 0 else "+"
        lead = f" {sign} " if text else "-" if weight < 0 else ""
        text += f"{lead}{size}{' ' if size and name else ''}{name}"
    return text or "0"


TP = Count(tp=1)
FP = Count(fp=1)
FN = Count(fn=1)
TN = Count(tn=1)
ONE = Count(one=1)
POSITIVES = TP + FN
NEGATIVES = FP + TN
EVERYONE = POSITIVES + NEGATIVES
