"""The four counts of a thresholded classifier, and weighted sums of them.

``TP + FP`` is not a number but a recipe: handed a table of counts (python floats, numpy arrays or
torch tensors, hard or soft) it gives the number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from setpoint._checks import is_number, number
from setpoint.rates.arrays import Array
from setpoint.rates.text import signed_sum


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

    @property
    def classes(self) -> Any:
        """Of several classes who was taken for whom, :class:`setpoint.rates.classes.Confusion`."""
        return None


@dataclass(frozen=True, repr=False)
class Count:
    """A weighted sum of TP, FP, FN, TN and the number one.

    >>> 2 * TP + FN
    2 TP + FN
    """

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0
    one: float = 0.0
    slopes: tuple[float, float, float, float] = field(init=False, compare=False)
    """How the sum changes with TP, FP, FN and TN while the class totals stay.

    What both outcomes of a class share is taken from the exact class total: ``2 TP + FN`` is
    ``positives + TP``.
    """
    _terms: tuple[tuple[float, str], ...] = field(init=False, compare=False)
    __array_ufunc__ = None  # numpy scalars leave the arithmetic to us

    def __post_init__(self) -> None:
        for part in fields(self)[:5]:
            value = number(getattr(self, part.name), f"The weight of {part.name.upper()}")
            object.__setattr__(self, part.name, value + 0.0)  # -0.0 becomes 0.0
        # computed once and plainly: a compiler for tensors must be able to read it
        p, n = _shared(self.tp, self.fn), _shared(self.fp, self.tn)
        slopes = (self.tp - p, self.fp - n, self.fn - p, self.tn - n)
        names = ("tp", "fp", "fn", "tn", "positives", "negatives")
        terms = ((w, name) for w, name in zip((*slopes, p, n), names, strict=True) if w)
        object.__setattr__(self, "slopes", slopes)
        object.__setattr__(self, "_terms", tuple(terms))

    def __add__(self, other: Count) -> Count:
        if not isinstance(other, Count):
            return NotImplemented
        return Count(*(a + b for a, b in zip(self.weights, other.weights, strict=True)))

    def __mul__(self, factor: float) -> Count:
        if not is_number(factor):
            return NotImplemented
        return Count(*(float(factor) * a for a in self.weights))

    __rmul__ = __mul__

    def __neg__(self) -> Count:
        return -1 * self

    def __sub__(self, other: Count) -> Count:
        return self + -other if isinstance(other, Count) else NotImplemented

    @property
    def weights(self) -> tuple[float, float, float, float, float]:
        """The five weights in the order TP, FP, FN, TN, one."""
        return (self.tp, self.fp, self.fn, self.tn, self.one)

    def of(self, table: Counts) -> Array:
        """The number this sum stands for in ``table``."""
        total: Array = self.one or None
        for weight, name in self._terms:
            value = getattr(table, name)
            term = value if weight == 1 else weight * value
            total = term if total is None else total + term
        return 0.0 if total is None else total

    def __str__(self) -> str:
        return signed_sum(zip(self.weights, ("TP", "FP", "FN", "TN", ""), strict=True))

    __repr__ = __str__


def _shared(a: float, b: float) -> float:
    """The part of two weights that they have in common: none if their signs differ."""
    if (a > 0) != (b > 0) or not a or not b:
        return 0.0
    return a if abs(a) <= abs(b) else b


TP = Count(tp=1)
FP = Count(fp=1)
FN = Count(fn=1)
TN = Count(tn=1)
ONE = Count(one=1)
POSITIVES = TP + FN
NEGATIVES = FP + TN
EVERYONE = POSITIVES + NEGATIVES
